"""When and where figures were measured, in one line."""

from __future__ import annotations

import platform
from datetime import UTC, date, datetime
from importlib.metadata import version

from skypane.runtime.machine_costs import processor
from skypane.runtime.resources import cores

PACKAGES = ("NumPy", "Numba", "skypane")


def stamp(day: date | None = None) -> str:
    """Return the line for a day, today (UTC) if none is given, and this machine: processor, cores, versions."""
    on = day or datetime.now(UTC).date()
    versions = ", ".join(f"{name} {version(name.lower())}" for name in PACKAGES)
    machine = f"{processor()}, {cores()} cores, Python {platform.python_version()}, {versions}"
    return f"Measured on {on.day} {on:%B %Y}: {machine}."
