"""What goals of the Makefile would do in a new checkout, and in one that has everything; nothing is installed here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OF_MAKE = frozenset({"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"})
"""What the goal that runs the tests passes on to other goals."""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def would_do(goal: str, environment: Path) -> str:
    """Return the commands that make would run for a goal, in an environment of this place."""
    command = ["make", "--dry-run", "--no-print-directory", goal, f"VENV={environment}"]
    own = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    return subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=True).stdout


def made(environment: Path, *stamps: str) -> Path:
    """Return an environment in which all is newer than what it was made from."""
    (environment / "bin").mkdir(parents=True)
    for name in ("bin/python", *stamps):
        (environment / name).touch()
    return environment


def test_a_demo_in_a_new_checkout_installs_what_it_needs(tmp_path: Path):
    commands = would_do("demo", tmp_path / "new")
    assert "installing skypane[demo,java]" in commands
    assert "--editable '.[demo,java]'" in commands
    assert "papers" not in commands
    assert commands.rstrip().endswith("bin/skypane demo")


def test_other_goals_then_install_the_rest(tmp_path: Path):
    commands = would_do("doctor", made(tmp_path / "half", ".installed-for-demo"))
    assert "dev" in commands.partition("installing skypane[")[2].partition("]")[0].split(",")
    assert "--editable ./papers" in commands


@pytest.mark.parametrize("stamp", [".installed", ".installed-for-demo"])
def test_a_demo_installs_nothing_twice(stamp: str, tmp_path: Path):
    environment = made(tmp_path / "there", stamp)
    assert would_do("demo", environment) == f"{environment}/bin/skypane demo \n"
