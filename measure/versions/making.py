"""Run goals of the Makefile."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from measure.versions.lock import ROOT

_CLOSING: Final = re.compile(r"^=+ (.*(?:passed|failed|error).*) in [\d.]+s.* =+$", re.MULTILINE)
_VARIABLE: Final = re.compile(r"(?:^| )(\w+)=")
_QUIET_CLOSING: Final = re.compile(r"^(\d+ (?:passed|failed|error).*) in [\d.]+s\b.*$", re.MULTILINE)


def make(goal: str, variables: Mapping[str, str], environment: Mapping[str, str], log: Path) -> int:
    """Add to the log what a goal says; return its exit code."""
    command = ["make", "--no-print-directory", goal, *(f"{name}={value}" for name, value in variables.items())]
    told = inherited() | dict(environment)
    with log.open("a", encoding="utf-8") as output:
        done = subprocess.run(command, cwd=ROOT, env=told, stdout=output, stderr=output, check=False)  # noqa: S603
    return done.returncode


def inherited() -> dict[str, str]:
    """Return this environment without a make above: it would hand its variables down, by its flags and one by one."""
    above = {"MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", *_VARIABLE.findall(os.environ.get("MAKEFLAGS", ""))}
    return {name: value for name, value in os.environ.items() if name not in above}


def closing(log: Path) -> str | None:
    """Return pytest's last words in a log, "24 passed, 90 deselected", or None if it did not come to any."""
    text = log.read_text(encoding="utf-8")
    found = _CLOSING.findall(text) or _QUIET_CLOSING.findall(text)
    return found[-1] if found else None


def tail(log: Path) -> str:
    """Return the last lines of a log, enough of them to hold the failures that pytest shows in the end."""
    return "\n".join(log.read_text(encoding="utf-8").splitlines()[-300:])
