from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkout import ROOT


@pytest.mark.slow
def test_a_query_starts_although_the_process_of_its_inputs_is_late(tmp_path: Path):
    """Spark waits ten seconds for it, which no setting changes; the first start never connects."""
    command = [sys.executable, "-m", "tests.runtime.late_python_driver", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=True)
    assert run.stdout == "[3.0]\n"
    assert run.stderr.count("a Python process of Spark took more than ten seconds to start; the start is repeated") == 1
