"""Processes with one cache of kernels: each kernel is compiled by one of them, and none waits forever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kernels.forking import Forking

from skypane.kernels.turns import LOCK_NAME, turn

HOLDER = """
import sys
from skypane.kernels.turns import turn
with turn(sys.argv[1], "scan"):
    print("has it", flush=True)
    sys.stdin.read()
"""
TAKER = """
import sys
from skypane.kernels.turns import turn
with turn(sys.argv[1], sys.argv[2], patience=float(sys.argv[3])):
    print("has it", flush=True)
"""
COMPILING = """
from skypane.kernels.compiled import kernel

@kernel
def doubled(x):
    return 2 * x

@kernel
def tripled(x):
    return x + doubled(x)

found = tripled(1.5)
print(found, *(each.__name__ for each in (doubled, tripled) if each.stats.cache_misses))
"""


def process(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=os.environ | environment)


def first_line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has its turn with the kernel `scan`, until its standard input ends."""
    with process(HOLDER, str(tmp_path)) as running:
        assert first_line(running) == "has it"
        yield running


def test_a_turn_ends_with_the_block(holder: subprocess.Popen[str], tmp_path: Path):
    with process(TAKER, str(tmp_path), "scan", "60") as taker:
        holder.communicate()
        assert first_line(taker) == "has it"


def test_a_turn_ends_with_a_process_that_is_killed(holder: subprocess.Popen[str], tmp_path: Path):
    with process(TAKER, str(tmp_path), "scan", "60") as taker:
        holder.kill()
        assert first_line(taker) == "has it"


@pytest.mark.parametrize(
    ("kernel", "patience"),
    [
        pytest.param("scan", "0.1", id="that has waited long enough"),
        pytest.param("merge", "3600", id="with another kernel"),
    ],
)
def test_a_process_continues_beside_the_holder(
    kernel: str, patience: str, holder: subprocess.Popen[str], tmp_path: Path
):
    with process(TAKER, str(tmp_path), kernel, patience) as taker:
        assert first_line(taker) == "has it"
    assert holder.poll() is None


def test_a_turn_within_a_turn_keeps_the_outer_one(tmp_path: Path):
    """As a kernel that compiles another one for itself."""
    with turn(str(tmp_path), "outer"):
        with turn(str(tmp_path), "inner"):
            pass
        with process(TAKER, str(tmp_path), "inner", "3600") as taker:
            assert first_line(taker) == "has it"
        with process(TAKER, str(tmp_path), "outer", "0.1") as taker:
            assert first_line(taker) == "has it"  # out of patience, not because the turn was over
    assert [file.name for file in tmp_path.iterdir()] == [LOCK_NAME]


def test_where_no_file_can_be_locked_nobody_waits(tmp_path: Path):
    with turn(str(tmp_path / "missing"), "scan"):
        assert not (tmp_path / "missing").exists()


def test_two_processes_compile_each_kernel_once(tmp_path: Path):
    """They begin in the same moment; a kernel compiles another one for itself."""
    (tmp_path / "numbers_of_points.py").write_text(COMPILING)
    with Forking() as forking:
        status, printed = forking.imported("numbers_of_points", tmp_path, tmp_path / "cache", times=2)
    assert status == 0
    answers = printed.splitlines()
    assert [answer.split()[0] for answer in answers] == ["4.5", "4.5"]
    assert sorted(name for answer in answers for name in answer.split()[1:]) == ["doubled", "tripled"]
