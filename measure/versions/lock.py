"""The content of a lock: one version per package, for each Python that the package is for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
DEVELOPMENT: Final = ROOT / "locks" / "development.txt"
OLDEST: Final = ROOT / "locks" / "oldest.txt"


def lines(lock: Path) -> list[Requirement]:
    """Return the lock's requirements, each of the form `name==version`, some with an environment marker."""
    texts = (line.partition("#")[0].strip() for line in lock.read_text(encoding="utf-8").splitlines())
    return [Requirement(text) for text in texts if text]


def versions(locked: Iterable[Requirement], python: str | None = None) -> dict[str, str]:
    """Return the version of each package by its canonical name, for a Python such as "3.12"; without one, for this one."""
    other = {"python_version": python, "python_full_version": f"{python}.0"} if python else {}
    here = [each for each in locked if each.marker is None or each.marker.evaluate(other)]
    return {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in here}
