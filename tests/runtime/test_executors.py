"""Executors follow elastic workers by Spark's own dynamic allocation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.runtime.driver import WINDOWS
from tests.runtime.elastic_driver import Laborious
from tests.runtime.executors_driver import FILES
from tests.runtime.streams import SECOND, expected, late_rows, parquet_rows, windows_of, write_batches
from tests.runtime.test_elastic import laborious

from skypane.plan import Plan
from skypane.runtime.spark.machine.executors import FOLLOWING, following

ROOT = Path(__file__).parents[2]
HEAVY, LIGHT = 6, 30
"""Batches: executors have to start in the first of them, and to be removed in the others."""


@pytest.mark.parametrize(("conf", "follows", "told"), [
    ({"spark.master": "local[4]"}, True, "local[4]: workers are threads of one process"),
    ({"spark.master": "spark://a:7077"}, False, "spark://a:7077: executors stay as many as they are, whatever elastic= decides"),
    (
        {"spark.master": "yarn", "spark.dynamicAllocation.maxExecutors": "8", **FOLLOWING},
        True,
        "yarn: executors follow, from 0 to 8 (spark.dynamicAllocation.minExecutors, maxExecutors); one without tasks",
    ),
])  # fmt: skip
def test_it_is_told_whether_executors_follow(conf: dict[str, str], follows: bool, told: str):
    found, line = following(conf.get)
    assert found is follows
    assert told in line


@pytest.mark.slow
def test_executors_start_and_go_while_the_query_runs_and_one_dies_while_it_starts(tmp_path: Path):
    """Answers are the oracle's, which knows of no executors."""
    batches = laborious(late_rows(3, batches=HEAVY + LIGHT, start=1_000 * SECOND), [400] * HEAVY + [0] * LIGHT)
    write_batches(tmp_path / "in", batches, files=FILES)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.executors_driver", str(tmp_path)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    tasks = [batch["tasks"] for batch in told["batches"]]
    assert (tasks[0], max(tasks), tasks[-1]) == (1, FILES, 1)
    assert len(told["executors"]) > 2, "more were started than the one there was at first, and one died"
    gone = [one for one in told["executors"] if not one["isActive"]]
    assert any("idle" in one.get("removeReason", "") for one in gone), gone
    answered = windows_of(parquet_rows(tmp_path / "out"))
    assert answered == expected(Plan(Laborious(), WINDOWS, "ts"), batches)
