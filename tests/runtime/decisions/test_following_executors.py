"""Executors follow the workers of a query, and answers are the oracle's while they come, go and are killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.parameters import slow_but
from tests.reporting.made import batch
from tests.runtime.decisions.test_elastic import PROGRESS, job_of, laborious
from tests.runtime.decisions.test_executors import assert_answered_as_undisturbed
from tests.runtime.driver import WINDOWS
from tests.runtime.elastic_driver import CostOption, Laborious
from tests.runtime.executor_model import Cluster
from tests.runtime.following_driver import FILES, KILLS, PATIENCE, batches
from tests.runtime.streams import SECOND, CountBySensor, expected, late_rows, parquet_rows, windows_of, write_batches

import skypane as sp
from skypane.control.executor_count import ExecutorCount
from skypane.control.parallelism import Workers
from skypane.control.splitting import splitting
from skypane.plan import Plan
from skypane.runtime.spark import classic_host
from skypane.runtime.spark.engine.control_loop import BatchDecisions, ControlLoop
from skypane.runtime.spark.engine.following import tasks_at_once
from skypane.runtime.spark.machine.executor_follower import ExecutorFollower
from skypane.runtime.spark.machine.executor_requests import ExecutorRequests
from skypane.types import ConfigError

KILLED_FOR = 60
"""Seconds in which executors are killed; `python -m tests.runtime.following_driver FOLDER local-cluster 600 5` does it for ten
minutes."""
KILL_EVERY = 5


def steering(*, limits: bool) -> BatchDecisions:
    control = ControlLoop(splitting("PB_RR"), Workers(4, 7), limits=limits)
    return control.decide(control.init())[1]


@pytest.mark.parametrize(("limits", "last", "tasks"), [
    (True, None, 4),
    (True, batch(wlq_where="driver", task_rows=(5,) * 9), 4),
    (True, batch(wlq_where="threads"), 4),
    (True, batch(wlq_where="spark"), 7),
    (False, batch(wlq_where="driver", task_rows=(5,) * 9), 9),
    (False, batch(wlq_where="driver", task_rows=(5,)), 4),
])  # fmt: skip
def test_tasks_count_where_they_need_executors(limits: bool, last: sp.BatchMetrics | None, tasks: int):
    assert tasks_at_once(steering(limits=limits), last) == tasks


def test_only_what_can_be_done_with_executors_may_be_requested():
    with pytest.raises(ConfigError, match="executors must be \"follow\" or None, got 'most'"):
        sp.Fuzzy(executors="most")  # type: ignore[arg-type]
    assert str(sp.Model(max_workers=4, executors="follow")) == "Model(max_workers=4, executors='follow')"


def test_executors_follow_where_it_is_requested_and_not_in_a_dry_run():
    follow = sp.Fuzzy(max_workers=4, executors="follow")
    assert sp.WorkerOptions(elastic=follow).executors_follow
    assert not sp.WorkerOptions(elastic=replace(follow, dry_run=True)).executors_follow
    assert not sp.WorkerOptions(elastic=sp.Fuzzy(max_workers=4)).executors_follow
    assert not sp.WorkerOptions().executors_follow


@pytest.mark.slow
def test_each_batch_requests_the_executors_of_its_workers(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, tmp_path: Path
):
    """A local session has no executors, so a model grants them; the query, its batches and decisions are real."""
    cluster = Cluster.filled(4)
    follower = ExecutorFollower(ExecutorRequests(cluster), policy=ExecutorCount(hold=0.0))
    monkeypatch.setattr(classic_host, "follower_of", lambda _: follower)
    rows = laborious(late_rows(11, batches=7, start=1_000 * SECOND), [20] * 4 + [0] * 3)
    write_batches(tmp_path / "in", rows)
    elastic = CostOption(max_workers=6, every=1, cooldown=0, executors="follow")
    workers = sp.WorkerOptions(plq_workers=1, wlq_workers=1, elastic=elastic)
    seen: list[sp.BatchMetrics] = []

    def note(metrics: sp.BatchMetrics) -> None:
        cluster.calm()
        seen.append(metrics)

    handle = job_of(spark, tmp_path, rows, query=Laborious(), workers=workers).start(
        trigger="available now", on_batch=note
    )
    assert handle.await_termination(600), handle.status
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(Plan(Laborious(), WINDOWS, "ts", PROGRESS), rows)
    decisions = [metrics.decision("executors") for metrics in seen]
    requested = [decision.value for decision in decisions if decision is not None]
    assert requested == [metrics.workers["plq"] for metrics in seen]
    assert (requested[0], max(requested)) == (1, 3)
    assert [metrics.executors for metrics in seen] == [1, *requested[:-1]], "the model grants them during the batch"
    last = decisions[-1]
    assert last is not None
    assert f"executors: {last.because}" in handle.explain().splitlines()


def test_without_the_option_nothing_is_reported_of_executors(spark: SparkSession, tmp_path: Path):
    rows = late_rows(11, batches=2)
    write_batches(tmp_path / "in", rows)
    seen: list[sp.BatchMetrics] = []
    handle = job_of(spark, tmp_path, rows, query=CountBySensor()).start(trigger="available now", on_batch=seen.append)
    assert handle.await_termination(600), handle.status
    assert {(metrics.executors, metrics.decision("executors")) for metrics in seen} == {(None, None)}
    assert "executors" not in handle.explain()


@pytest.mark.parametrize("where", slow_but((), ("local-cluster", "standalone"), ("local-cluster",)))
def test_executors_come_with_the_load_and_are_released_while_batches_follow_each_other(
    where: str, tmp_path: Path, driven: Callable[..., dict[str, Any]]
):
    """Without a trigger no executor is ever idle for long: Spark's own dynamic allocation would keep all of them."""
    report = driven("following_driver", where, timeout=2 * PATIENCE)
    assert report["rounds"] == 1, report
    there = [one["there"] for one in report["batches"]]
    assert max(there) == FILES
    assert there[-1] == 1
    assert all(one["requested"] >= one["workers"] for one in report["batches"])
    assert_answered_as_undisturbed(tmp_path, report, batches(0.0))


@pytest.mark.slow
def test_executors_that_are_killed_and_released_lose_and_double_nothing(
    tmp_path: Path, driven: Callable[..., dict[str, Any]]
):
    timeout = KILLED_FOR + 2 * PATIENCE
    report = driven("following_driver", "local-cluster", KILLED_FOR, KILL_EVERY, timeout=timeout)
    assert report["killed"] >= KILLS
    assert report["rounds"] >= 1, "executors have come and gone"
    assert_answered_as_undisturbed(tmp_path, report, batches(KILLED_FOR))
