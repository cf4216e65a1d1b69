"""kill -9 before, in and after file operations of the engine, without a Java: every row is answered for, every window once."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.chaos.driver import SCENARIOS
from tests.checkout import PYTHONPATH, ROOT
from tests.parameters import slow_but, times


def survived(scenario: str, kills: int, seed: int) -> dict[str, int]:
    """Run a campaign in a process of its own, which forks."""
    command = [sys.executable, "-m", "tests.chaos.campaign", scenario, str(kills), str(seed)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": PYTHONPATH, "NUMBA_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


@pytest.mark.parametrize(
    "scenario", slow_but(("skyline", "continuous", "shared", "amended", "early", "rolling"), SCENARIOS)
)
def test_a_stream_survives_kills(scenario: str):
    counts = survived(scenario, 25, 1)
    assert counts["kills"] >= 25
    assert counts["streams"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_stream_survives_many_kills(scenario: str):
    counts = survived(scenario, times(170), 2)
    assert counts["kills"] >= times(170)
    assert counts["taken over"] > 0
