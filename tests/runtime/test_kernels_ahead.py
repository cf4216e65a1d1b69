"""The process that compiles kernels while a query starts: it compiles the families that it is called with, and ends with its starter."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from tests.nature.processes import is_there
from tests.parameters import slow_but

from skypane.kernels import warming
from skypane.kernels.families import EVERY
from skypane.runtime import kernels_ahead

START = """
import sys
from skypane.kernels.warming import missing
from skypane.runtime import kernels_ahead
families = sys.argv[1:]
print(len(missing(families)), flush=True)
kernels_ahead.prepare_kernels(families)
kernels_ahead.prepare_kernels(families)
(helper,) = kernels_ahead._HELPERS
print(helper.process.pid, flush=True)
if sys.stdin.readline() == "wait\\n":
    print(helper.process.wait(), missing(families), missing(["dominance"]) == [], flush=True)
kernels_ahead.prepare_kernels(families)
print(len(kernels_ahead._HELPERS), flush=True)
sys.stdin.readline()
"""
UNCACHED = """
import numpy as np
from skypane.kernels.warming import compilations
from skypane.runtime import kernels_ahead
with compilations(None) as compiled:
    kernels_ahead.prepare_kernels(["scores"])
print(len(compiled), len(kernels_ahead._HELPERS))
"""


def started(program: str, *families: str, **environment: str) -> subprocess.Popen[str]:
    pipe, command = subprocess.PIPE, [sys.executable, "-c", program, *families]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=os.environ | environment)


def line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def say(running: subprocess.Popen[str], text: str) -> None:
    assert running.stdin is not None
    running.stdin.write(f"{text}\n")
    running.stdin.flush()


@pytest.mark.slow
@pytest.mark.long
def test_kernels_that_are_missing_are_compiled_once_and_those_of_other_queries_are_not(tmp_path: Path):
    with started(START, "scores", NUMBA_CACHE_DIR=str(tmp_path)) as running:
        assert int(line(running)) == 3
        line(running)
        say(running, "wait")
        assert line(running) == "0 [] False"
        assert line(running) == "1"  # nothing is missing, so no other process was started
        _, errors = running.communicate()
    assert errors.count("compiling kernels in another process") == 1


@pytest.mark.long
@pytest.mark.parametrize("how", slow_but(["is killed"], ["ends", "is killed"]))
def test_it_ends_with_its_starter(how: str, tmp_path: Path):
    """All kernels take it half a minute."""
    with started(START, *EVERY, NUMBA_CACHE_DIR=str(tmp_path)) as running:
        line(running)
        helper = int(line(running))
        assert is_there(helper)
        if how == "is killed":
            running.kill()
        running.communicate("go on\n\n" if how == "ends" else None)
        until_gone(helper)


def until_gone(process: int) -> None:
    """Wait for the end of a process that is not this one's child; os.pidfd_open is readable then."""
    try:
        file = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        assert select.select([file], [], [], 60)[0], "it still runs"
    finally:
        os.close(file)


@pytest.mark.slow
def test_without_a_folder_for_kernels_they_are_compiled_here():
    """As in a container whose packages and home cannot be written."""
    blocked = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
"""
    with started(blocked + UNCACHED) as running:
        compiled, helpers = line(running).split()
    assert int(compiled) >= 3
    assert helpers == "0"


def test_a_process_that_cannot_start_is_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warming, "missing", lambda _families: ["scan"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    kernels_ahead.prepare_kernels(["scores"])
    assert not any(helper.runs for helper in kernels_ahead._HELPERS)
