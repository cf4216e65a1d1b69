"""Settings of other versions: what make gets to install, what it prints, and the table that is kept."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from measure.versions.__main__ import NAMES, TABLE, row
from measure.versions.kept import Kept
from measure.versions.lock import ROOT, lines
from measure.versions.making import closing, inherited, make
from measure.versions.settings import SETTINGS, Setting
from measure.versions.trial import PACKAGES, Trial
from packaging.requirements import Requirement


def planned(setting: Setting) -> str:
    """Return what make would do for a setting."""
    goal = f"{setting.variables['VENV']}/.installed"
    command = ["/usr/bin/make", "-n", goal, *(f"{name}={value}" for name, value in setting.variables.items())]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_chosen_versions_differ_from_those_of_the_lock(setting: Setting, tmp_path: Path):
    """The constraints that make writes leave out each package that is chosen or freed, and no other."""
    (script,) = re.findall(r"^sed .*$", planned(setting), re.MULTILINE)
    (tmp_path / setting.variables["VENV"]).mkdir(parents=True)
    (tmp_path / "locks").symlink_to(ROOT / "locks")
    subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, check=True)
    left = {each.name for each in lines(tmp_path / setting.variables["VENV"] / "constraints.txt")}
    freed = {Requirement(text).name for text in setting.variables["WITH"].split()} | set(setting.freed)
    assert left == {each.name for each in lines(ROOT / setting.lock)} - freed
    assert all(f"{text} " in f"{planned(setting)} ".replace(";", " ") for text in setting.variables["WITH"].split())


def test_each_package_that_matters_is_tested_older_than_in_the_lock():
    chosen = {Requirement(text).name for setting in SETTINGS for text in setting.chosen}
    assert chosen == set(PACKAGES)
    assert len(set(NAMES)) == len(NAMES)


def test_a_goal_is_made_without_the_variables_of_a_make_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAKEFLAGS", "-n -- ARGS=above")
    log = tmp_path / "log"
    assert make("help", {}, {}, log) == 0
    assert "make matrix" in log.read_text()
    assert make("no-such-goal", {}, {}, log) == 2


def test_variables_of_a_parent_make_are_not_inherited(monkeypatch: pytest.MonkeyPatch):
    for name, value in {"MAKEFLAGS": " --jobs=2 -- SEED=7 ARGS=two\\ words", "ARGS": "two words", "SEED": "7"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MINUTES", "9")
    left = inherited()
    assert not left.keys() & {"MAKEFLAGS", "ARGS", "SEED"}
    assert left["MINUTES"] == "9"


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("=== 24 passed, 89 deselected in 61.20s (0:01:01) ===\n", "24 passed, 89 deselected"),
        ("=== 1 failed, 23 passed in 9.1s ===\nmake: *** [core] Error 1\n", "1 failed, 23 passed"),
        ("7 passed in 0.10s\n", "7 passed"),
        ("make: *** no rule\n", None),
    ],
)
def test_the_last_words_of_tests_are_found(output: str, found: str | None, tmp_path: Path):
    (tmp_path / "log").write_text(f"collected 24 items\n{output}")
    assert closing(tmp_path / "log") == found


def test_a_new_row_replaces_its_own_and_leaves_the_others(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- t -->\n<!-- /t -->\nafter\n")
    table = Kept("t", ("setting", "x", "tests", "took", "on"), page)
    table.record(["a", "b"], {"b": ("b", "1", "1 failed", "2 s", "day 1")})
    table.record(["a", "b"], {"b": ("b", "1", "1 passed", "2 s", "day 2")})
    table.record(["a", "b", "c"], {"a": ("a", "2", "1 passed", "3 s", "day 3")})
    assert list(table.rows().values()) == [
        ("a", "2", "1 passed", "3 s", "day 3"),
        ("b", "1", "1 passed", "2 s", "day 2"),
        ("c", "", "not tried", "", ""),
    ]
    assert re.fullmatch(r"before\n<!-- t -->\n.*<!-- /t -->\nafter\n", page.read_text(), re.DOTALL)


def test_the_page_has_a_row_for_each_setting():
    assert list(TABLE.rows()) == NAMES
    trial = Trial(dict.fromkeys(("python", "java", *PACKAGES), "1"), "24 passed", passed=True, seconds=61.0)
    assert len(row("newest", trial, "2026-11-22")) == len(TABLE.head)
