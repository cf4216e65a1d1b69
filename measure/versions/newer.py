"""Packages whose version in this environment differs from the lock: `python -m measure.versions.newer`."""

from __future__ import annotations

from importlib.metadata import distributions
from typing import Final

from packaging.utils import canonicalize_name

from measure.versions.lock import DEVELOPMENT, lines, versions

UNRULED: Final = frozenset({"skypane", "pip", "setuptools", "uv"})
"""What is installed and no lock's matter: the package itself, and what environments are made with."""


def installed() -> dict[str, str]:
    """Return the version of each package that is installed here for a lock to rule, by its canonical name."""
    found = {canonicalize_name(each.name): each.version for each in distributions()}
    return {name: version for name, version in found.items() if name not in UNRULED}


def differences(locked: dict[str, str], there: dict[str, str]) -> list[str]:
    """Return a line for each package that is installed in another version than the locked one, or not locked."""
    return [
        f"{name} {locked.get(name, 'not locked')} -> {version}"
        for name, version in sorted(there.items())
        if locked.get(name) != version
    ]


def main() -> None:
    """Print the differences, or that there are none."""
    print("\n".join(differences(versions(lines(DEVELOPMENT)), installed())) or "the lock has the newest of everything")


if __name__ == "__main__":
    main()
