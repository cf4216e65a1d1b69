"""What `make release` refuses to begin with."""

from __future__ import annotations

import importlib.util
import tomllib
from typing import Any

import pytest
from tests.checkout import ROOT

pytestmark = pytest.mark.pages

CHANGES = "# Changelog\n\n## [Unreleased]\n\n## [0.3.0] - 2027-01-31\n\n- one\n\n## [0.2.0] - 2026-11-22\n"


def release() -> Any:
    """The program, which is not part of a package."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "changes", "clean", "problem"),
    [
        ("0.3.0", CHANGES, True, ""),
        ("0.3.0", CHANGES, False, "changes that are not committed"),
        ("0.4.0", CHANGES, True, "has no section [0.4.0]; it has Unreleased, 0.3.0, 0.2.0"),
        ("0.2.0", CHANGES, True, "newest section of CHANGELOG.md is not [0.2.0]"),
        ("0.3.0", CHANGES.replace(" - 2027-01-31", ""), True, "has no day"),
    ],
)
def test_what_is_not_ready_is_reported(version: str, changes: str, clean: bool, problem: str):
    problems = release().unready(version, changes, clean=clean)
    assert problem in problems
    assert bool(problems) == bool(problem)


def test_the_package_of_the_papers_has_the_same_version_and_needs_it():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    papers = tomllib.loads((ROOT / "papers" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert papers["version"] == version
    assert f"skypane[cli]=={version}" in papers["dependencies"]


def test_the_version_has_its_section_of_the_changelog():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert release().unready(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), clean=True) == ""
