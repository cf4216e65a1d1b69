"""The memory of a run's processes, by kind: what has only been forked is not counted, and what it becomes is."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.checkout import ROOT

FORKED = """
import json, os
from measure.processes import Watch, forget_peaks, peaks
held = bytearray(200 << 20)
forget_peaks()
reading, writing = os.pipe()
if not os.fork():
    os.close(writing)
    os.read(reading, 1)
    os._exit(0)
{then}
with Watch() as watch:
    while not watch.together["all"]:
        pass
print(json.dumps([peaks(), watch.most]))
os.close(writing)
{end}
"""
BECOME = """
import subprocess, sys
program = "held = bytearray(300 << 20); print(flush=True); input()"
other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
other.stdout.readline()
"""
MIB = 1 << 20


def found(then: str = "", end: str = "") -> tuple[dict[str, int], dict[str, int]]:
    """Return what a process that holds 200 MiB, and has forked, says."""
    program = FORKED.format(then=then, end=end)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    most, held = json.loads(done.stdout)
    return most, held


def test_a_forked_process_does_not_count_until_it_is_another_program():
    most, held = found()
    assert most["worker"] == held["workers"] == 0
    assert held["all"] == held["driver"] >= 200 * MIB
    assert most["driver"] >= 200 * MIB


def test_a_program_that_was_started_counts():
    most, held = found(BECOME, "other.communicate(b'\\n')")
    assert most["worker"] == pytest.approx(held["workers"], rel=0.1)
    assert 300 * MIB <= held["workers"] < 400 * MIB
    assert held["all"] == held["driver"] + held["workers"]
