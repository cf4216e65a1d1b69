"""Locks hold one version of each package that pyproject.toml requires, within its bounds, and this environment has them."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from measure.versions.lock import DEVELOPMENT, OLDEST, ROOT, lines, versions
from measure.versions.newer import differences, installed
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

pytestmark = pytest.mark.pages

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = ("3.11", "3.12", "3.13")
RUNS = list(map(Requirement, PROJECT["project"]["dependencies"]))
BUILDS = [Requirement(text) for text in (*PROJECT["build-system"]["requires"], *PROJECT["dependency-groups"]["build"])]


def extras(names: set[str]) -> list[Requirement]:
    found = [Requirement(text) for name in names for text in PROJECT["project"]["optional-dependencies"][name]]
    return [each for each in found if each.name != "skypane"]


REQUIRED = {
    DEVELOPMENT: [*RUNS, *BUILDS, *extras(set(PROJECT["project"]["optional-dependencies"]))],
    OLDEST: [*RUNS, *BUILDS, *extras({"dev", "java"})],
}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", REQUIRED, ids=lambda lock: lock.stem)
def test_each_package_is_locked_within_its_bounds(lock: Path, python: str):
    locked = versions(lines(lock), python)
    required = [
        each for each in REQUIRED[lock] if each.marker is None or each.marker.evaluate({"python_version": python})
    ]
    assert required
    assert [str(each) for each in required if canonicalize_name(each.name) not in locked] == []
    assert [str(each) for each in required if not each.specifier.contains(locked[canonicalize_name(each.name)])] == []


@pytest.mark.parametrize("lock", REQUIRED, ids=lambda lock: lock.stem)
def test_a_lock_is_a_list_of_versions_and_of_no_places(lock: Path):
    text = lock.read_text()
    assert "://" not in text
    assert [str(each) for each in lines(lock) if [clause.operator for clause in each.specifier] != ["=="]] == []
    for python in PYTHONS:
        names = [canonicalize_name(each.name) for each in lines(lock)
                 if each.marker is None or each.marker.evaluate({"python_full_version": f"{python}.0"})]  # fmt: skip
        assert len(names) == len(set(names))


@pytest.mark.parametrize("python", PYTHONS)
def test_the_oldest_are_the_bounds_themselves(python: str):
    """A bound may name a version that a newer bound of another package rules out: then it is not the lowest that will do."""
    locked = versions(lines(OLDEST), python)
    floors: dict[str, Version] = {}
    for each in RUNS:
        if each.marker is None or each.marker.evaluate({"python_version": python}):
            lowest = next(Version(clause.version) for clause in each.specifier if clause.operator == ">=")
            floors[each.name] = max(lowest, floors.get(each.name, lowest))
    assert {name: Version(locked[name]) for name in floors} == floors


def test_this_environment_has_the_versions_of_its_lock():
    """make leaves beside an environment what it held it to."""
    constraints = Path(sys.prefix) / "constraints.txt"
    if not constraints.exists():
        pytest.skip("this environment was not made by make")
    locked = versions(lines(constraints))
    assert differences(locked, {name: version for name, version in installed().items() if name in locked}) == []


def test_differences_are_reported_by_name():
    assert differences({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == ["b 2 -> 3", "c not locked -> 4"]
