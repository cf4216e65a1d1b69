"""Executors follow elastic workers by Spark's own dynamic allocation."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.runtime.cluster import standalone
from tests.runtime.driver import WINDOWS
from tests.runtime.executors_driver import FILES, SECONDS, batches
from tests.runtime.streams import CountBySensor, expected, parquet_rows, windows_of

import skypane as sp
from skypane.plan import Plan
from skypane.runtime.spark.machine.executors import FOLLOWING, following, slots_of


@pytest.mark.parametrize(("conf", "follows", "report"), [
    ({"spark.master": "local[4]"}, True, "local[4]: workers are threads of one process"),
    ({"spark.master": "spark://a:7077"}, False, 'spark://a:7077: executors follow a query with elastic= and executors="follow"; for all others, their number is fixed'),
    (
        {"spark.master": "spark://a:7077", **FOLLOWING},
        True,
        "as its batches give each executor a task; without spark.executor.cores each takes all the cores of a machine",
    ),
    (
        {"spark.master": "yarn", "spark.dynamicAllocation.maxExecutors": "8", **FOLLOWING},
        True,
        "maxExecutors); one without tasks for 60s is removed (executorIdleTimeout), one with files of an exchange after 60s",
    ),
    (
        {"spark.master": "yarn", "spark.dynamicAllocation.enabled": "true"},
        True,
        "one with files of an exchange is kept (shuffleTracking.timeout)",
    ),
    (
        {"spark.master": "yarn", "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "false"},
        True,
        "for 60s is removed (executorIdleTimeout); a stream needs a trigger",
    ),
])  # fmt: skip
def test_the_line_states_whether_executors_follow(conf: dict[str, str], follows: bool, report: str):
    found, line = following(conf.get)
    assert found is follows
    assert report in line


@pytest.mark.parametrize(("conf", "slots"), [
    ({"spark.master": "local-cluster[4,2,1024]"}, 2),
    ({"spark.master": "local-cluster[4, 6, 1024]", "spark.task.cpus": "2"}, 3),
    ({"spark.master": "spark://a:7077"}, 1),
    ({"spark.master": "spark://a:7077", "spark.executor.cores": "4"}, 4),
    ({"spark.master": "yarn", "spark.executor.cores": "1", "spark.task.cpus": "2"}, 1),
])  # fmt: skip
def test_the_tasks_that_an_executor_runs_at_once_follow_from_settings(conf: dict[str, str], slots: int):
    assert slots_of(conf.get) == slots


def assert_answered_as_undisturbed(folder: Path, report: dict[str, Any], batches: list[pa.Table]) -> None:
    """Compare the answers of a driver, whose report has the batches that were fed, with the oracle's, which knows no executors."""
    answered = windows_of(parquet_rows(folder / "out"))
    plan = Plan(CountBySensor(), WINDOWS, "ts", sp.Watermark("20 seconds"))
    assert len(answered) > 1
    assert answered == expected(plan, batches[: len(report["batches"])])


@pytest.mark.slow
def test_executors_start_and_go_while_the_query_runs_and_one_dies_while_it_starts(tmp_path: Path, driven):
    report = driven("executors_driver", FILES, timeout=2 * SECONDS)
    tasks = [batch["tasks"] for batch in report["batches"]]
    assert (tasks[0], max(tasks), tasks[-1]) == (1, FILES, 1)
    last = report["batches"][-1]["began"]
    joined = sorted(_seconds(one["addTime"]) for one in report["executors"])
    assert len(joined) > 1
    assert joined[1] < last, "the query ran when another joined the first"
    assert report["killed"], "and when one was killed before it could join"
    gone = [one for one in report["executors"] if not one["isActive"]]
    assert gone, report["executors"]
    assert sum(one["isActive"] for one in report["executors"]) == 1
    assert_answered_as_undisturbed(tmp_path, report, batches())


@pytest.mark.slow
def test_a_cluster_that_refuses_executors_lets_tasks_wait(tmp_path: Path, driven):
    report = driven("executors_driver", 1, timeout=2 * SECONDS)
    assert max(batch["tasks"] for batch in report["batches"]) == FILES, "three tasks on the one executor that there is"
    assert len(report["executors"]) == 1
    assert report["batches"][-1]["tasks"] == 1, "the stream has gone on"
    assert_answered_as_undisturbed(tmp_path, report, batches())


@pytest.mark.slow
def test_doctor_reports_within_seconds_that_a_cluster_grants_nothing(tmp_path: Path):
    """A master without a worker: Spark itself would wait forever."""
    with standalone(tmp_path, cores=0) as master:
        command = [sys.executable, "-m", "skypane", "doctor", "--master", master, "--timeout", "10"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 1, done.stderr
    assert f"{master}: after 10 s no task has started: the cluster grants no executor" in done.stdout
    assert "their number is fixed" in done.stdout, "the checks after it still run"


def _seconds(time: str) -> float:
    return datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC).timestamp()
