"""Changes of a job and deaths of its drivers, in random walks (changed_walks.py)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.checkout import PYTHONPATH, ROOT
from tests.engine.test_begun_batch import SINKS


@pytest.mark.parametrize("walks", [len(SINKS), pytest.param(12 * len(SINKS), marks=pytest.mark.slow)])
def test_no_change_and_no_death_loses_doubles_or_changes_a_row(walks: int):
    """In a process of its own: others have threads of Delta's library, which no fork may have."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.changed_walks", "1", str(walks)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4_000:]
    assert done.stdout.startswith(f"{walks} walks, ")
