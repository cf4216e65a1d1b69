"""What counts against a silent driver: the time in which it could have run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.nature.silence import MOST, Silence, is_too_long

LIMIT = 120
BUSY = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nprint(flush=True)\nwhile True: pass"
IDLE = "import sys; print(flush=True); sys.stdin.read()"

pytestmark = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel counts no waits here")


def started(program: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def ended(*processes: subprocess.Popen[bytes]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


def is_asleep(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be held to a core here")
def test_only_busy_processes_wait_for_a_core():
    idle, *busy = started(IDLE), started(BUSY), started(BUSY)
    try:
        until = time.monotonic() + LIMIT
        while not is_asleep(idle.pid):
            assert time.monotonic() < until
        silences = [Silence(process.pid) for process in (idle, *busy)]
        while not all(silence.waited > 0.2 for silence in silences[1:]):
            assert time.monotonic() < until
            for silence in silences:
                silence.look()
        assert silences[0].waited == 0
    finally:
        ended(idle, *busy)


@pytest.mark.parametrize(
    ("seconds", "waited", "hung"),
    [
        (299, 0, False),
        (301, 0, True),
        (301, 2, False),
        (1_000, 690, True),
        (1_000, 710, False),
        (300 * MOST, 300 * 50 * MOST, False),
        (300 * MOST + 1, 300 * 50 * MOST, True),
    ],
)
def test_waits_for_a_core_do_not_count_up_to_a_limit(seconds: float, waited: float, hung: bool):
    assert is_too_long(seconds, waited, 300) is hung
