"""Processes in a group with a limit: they see it, the kernel holds them to it, and nothing is left of the group."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from measure.bounded import Bounded, size_of, why_not

MIB = 1 << 20

LOOK = "from skypane.runtime import resources; print(resources.memory_bytes(), resources.room_bytes())"
TAKE = "held = bytearray(512 << 20)"
LEAVE = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'], stdout=subprocess.DEVNULL)"

needs_groups = pytest.mark.skipif(bool(why_not()), reason=why_not())


def run(bounded: Bounded, program: str) -> subprocess.CompletedProcess[str]:
    command = bounded.command([sys.executable, "-c", program])
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=60)


@needs_groups
def test_a_process_sees_the_limit_of_the_group_that_it_is_in():
    with Bounded(256 * MIB) as bounded:
        limit, room = map(int, run(bounded, LOOK).stdout.split())
    assert limit == 256 * MIB
    assert 0 < room < limit


@needs_groups
def test_the_kernel_ends_what_takes_more():
    with Bounded(256 * MIB) as bounded:
        assert run(bounded, "pass").returncode == 0
        assert bounded.killed == 0
        assert run(bounded, TAKE).returncode == -9
        assert bounded.killed == 1


@needs_groups
def test_nothing_is_left():
    with Bounded(256 * MIB) as bounded:
        assert run(bounded, LEAVE).returncode == 0
        folder = Path(bounded.command([])[3]).parent
        assert len((folder / "cgroup.procs").read_text().split()) == 1
    assert not folder.exists()


@pytest.mark.parametrize(("text", "size"), [("2GiB", 2 << 30), ("1.5GiB", 3 << 29), ("512MiB", 512 * MIB)])
def test_a_size_is_read(text: str, size: int):
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["2", "2GB", "much", "-1GiB"])
def test_an_invalid_size_is_refused(text: str):
    with pytest.raises(ValueError, match="2GiB"):
        size_of(text)
