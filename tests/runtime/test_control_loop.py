"""Workers and the control policies at the engine: what a batch gets, what is saved with it, what a restart makes of it."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.driver import Task, assert_killed
from tests.runtime.splitting_driver import LAST, splitting_job
from tests.runtime.streams import (
    CountBySensor,
    expected,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.control.exchange import CONFIRM, ExchangeState, SourceSpread
from skypane.control.measurements import BatchMeasurements, PaneWork, TaskWork
from skypane.control.parallelism import Workers
from skypane.control.splitting import AdaptiveSplitting, PidSplitting, Routing, Share, SplittingSample, splitting
from skypane.control.splitting.pid import FALLBACK
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.control_loop import ControlLoop
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.plq import routed
from skypane.runtime.spark.engine.utilization import period_of
from skypane.types import CheckpointError, ConfigError
from skypane.windows import Windows

CONTROL = ControlLoop(splitting("PB_RR"), Workers(2, 2))


def lopsided(*, exchanged: bool = False) -> BatchMeasurements:
    """A batch in which one of two tasks had all the work."""
    busy = TaskWork(1_000, 3.0, (PaneWork(0, 600, 1.5), PaneWork(1, 400, 1.0)))
    return BatchMeasurements((busy, TaskWork(0, 0.0, ())), merge_seconds=0.0, interval=4.0, exchanged=exchanged)


@pytest.mark.parametrize("number", [0, -1, 1.5, "2", True, None])
def test_workers_are_whole_numbers_of_at_least_one(number: Any):
    with pytest.raises(ConfigError, match="wlq_workers must be a whole number of at least 1"):
        Workers(1, number)


def test_rows_stay_until_an_exchange_has_paid_several_times():
    state = CONTROL.init()
    for _ in range(CONFIRM):
        assert CONTROL.decide(state)[1].routing is None
        state = CONTROL.observe(state, lopsided())
    _, decided = CONTROL.decide(state)
    assert decided.routing == Routing(2)
    assert decided.exchange.value
    assert CONTROL.observe(state, lopsided(exchanged=True)).exchange.age == 1


def test_the_exchange_policy_gets_the_growth_of_a_querys_partials():
    """A fifth of what 64 partitions cost to merge is saved of a skyline in eight dimensions; of a top-k nearly all."""
    spread = SourceSpread(100_000, (0.1, 0.1), panes=10, partials=640, merge_seconds=1.008, workers=2)
    saved = {}
    for query in (
        Skyline(sp.from_sense([f"c{at}" for at in range(8)], ["min"] * 8)),
        sp.TopK(5, "price"),
        CountBySensor(),
    ):
        setting = JobSettings(Plan(query, Windows.of("10 s"), "ts"), None, None, "", None, splitting("PB_RR"))  # type: ignore[arg-type]
        saved[type(query).__name__] = ControlLoop.of(setting, Workers(2, 2)).exchange.figures(spread)["whole_panes"]
    assert saved == {
        "Skyline": pytest.approx(1 - 64**-0.24),
        "TopK": pytest.approx(1 - 1 / 64),
        "CountBySensor": pytest.approx(1 - 64**-0.25),  # is not known
    }


def test_the_state_of_control_comes_back_from_the_ledger():
    state = CONTROL.observe(replace(CONTROL.init(), workers=Workers(3, 1)), lopsided())
    assert CONTROL.restore(json.loads(json.dumps(CONTROL.snapshot(state)))) == state


def test_a_job_with_other_numbers_of_workers_starts_with_them():
    """And one with the same numbers as before continues with those that scale() has set."""
    scaled = CONTROL.snapshot(replace(CONTROL.init(), workers=Workers(7, 1)))
    assert CONTROL.restore(scaled).workers == Workers(7, 1)
    other = ControlLoop(CONTROL.splitting, Workers(4, 2))
    assert other.restore(scaled) == other.init()


def test_a_splitting_policy_gets_its_state_back_and_another_starts_without():
    control = ControlLoop(PidSplitting(), Workers(2, 2))
    state = control.observe(control.init(), lopsided(exchanged=True))
    assert state.splitting.rho is not None, "the policy has seen how hard the tasks worked"
    assert control.restore(json.loads(json.dumps(control.snapshot(state)))) == state
    assert CONTROL.restore(control.snapshot(state)).splitting == CONTROL.splitting.init()


def test_a_checkpoint_with_the_old_key_law_for_a_policy_is_read():
    """Those of version 0.2."""
    control = ControlLoop(PidSplitting(), Workers(2, 2), elastic=sp.Fuzzy(max_workers=8).scaling(Workers(2, 2)))
    state = control.observe(control.init(), lopsided(exchanged=True))
    snapshot = control.snapshot(state)
    for part in ("splitting", "elastic"):
        snapshot[part]["law"] = snapshot[part].pop("policy")
    snapshot["asked"] = snapshot.pop("requested")
    assert control.restore(snapshot) == state
    with pytest.raises(CheckpointError, match="the control state in the checkpoint cannot be read"):
        control.restore({**snapshot, "splitting": {"state": None}})


def test_a_source_that_sets_its_readers_gets_that_many_tasks():
    """The elastic policy knows what waited a batch ago; a number that the job itself gives holds all the same."""
    elastic = sp.Model(latency="5 seconds", max_workers=9).scaling(Workers(2, 1), 8)
    quiet = replace(lopsided(exchanged=True), sized=True)
    for limits, sized, tasks in ((False, False, 2), (False, True, None), (True, True, 2)):
        control = ControlLoop(splitting("PB_RR"), Workers(2, 1), elastic=elastic, limits=limits)
        state = control.observe(control.init(), replace(quiet, sized=sized))
        state = control.observe(state, replace(quiet, sized=False))  # a batch that comes again is not measured
        _, steering = control.decide(state)
        assert (steering.workers.plq, steering.tasks) == (2, tasks)


def test_a_batch_is_split_as_the_last_one_would_have_been():
    """Panes of 100 rows but one of 1,000: their mean and deviation are 550 and 450; the large one moves on and is split."""
    control = ControlLoop(AdaptiveSplitting(), Workers(2, 2))
    sizes = TaskWork(1_100, 1.0, (PaneWork(5, 100, 0.1), PaneWork(6, 1_000, 0.9)))
    even = TaskWork(1_100, 1.0, (PaneWork(4, 100, 0.1), PaneWork(5, 1_000, 0.9)))
    state = replace(control.init(), exchange=ExchangeState(needed=True))
    for tasks in (even, sizes):
        state = control.observe(state, BatchMeasurements((tasks,), merge_seconds=0.0, interval=4.0, exchanged=True))
    state = replace(state, splitting=control.splitting.observe(state.splitting, SplittingSample(None, (100,) * 20)))
    _, decided = control.decide(state)
    assert decided.routing is not None
    assert decided.routing.owners(6) == (0,)
    assert decided.routing.owners(7) == (1, 0), "expected one pane on, and over the threshold"
    assert decided.splitting.value == "AS"
    assert decided.splitting.because.startswith("theta ")
    assert decided.splitting.figures["alpha"] == 1.0


def test_the_interval_of_a_batch_is_what_its_other_steps_leave():
    period = period_of(replace(lopsided(), merge_seconds=1.0))
    assert period is not None
    assert period.seconds == 3.0
    assert period.sigma == 1.0
    overloaded = period_of(replace(lopsided(), merge_seconds=9.0))
    assert overloaded is not None
    assert overloaded.seconds > 0
    assert period_of(replace(lopsided(), interval=None)) is None


def test_a_clock_that_runs_backwards_measures_nothing_and_moves_nothing():
    control = ControlLoop(PidSplitting(gains=FALLBACK), Workers(2, 2))
    state = control.observe(control.init(), lopsided(exchanged=True))
    after = control.observe(state, replace(lopsided(exchanged=True), interval=-4.0))
    assert period_of(replace(lopsided(), interval=-4.0)) is None
    assert (after.splitting.pid, after.splitting.rho) == (state.splitting.pid, state.splitting.rho)


def test_a_batch_longer_than_its_interval_lowers_alpha():
    """Rows of two seconds that took three: the stage is overloaded, and panes are split more from now on."""
    control = ControlLoop(PidSplitting(gains=FALLBACK), Workers(2, 2))
    state = control.observe(control.init(), replace(lopsided(exchanged=True), interval=2.0))
    assert state.splitting.rho > 1
    assert state.splitting.pid.alpha < 1


def test_a_restart_continues_with_the_same_alpha():
    control = ControlLoop(PidSplitting(gains=FALLBACK), Workers(2, 2))
    state = control.observe(control.init(), replace(lopsided(exchanged=True), interval=2.0))
    restored = control.restore(json.loads(json.dumps(control.snapshot(state))))
    assert restored.splitting.pid.alpha == state.splitting.pid.alpha != 1
    again = replace(lopsided(exchanged=True), interval=2.0)
    assert control.observe(restored, again) == control.observe(state, again)


def test_a_start_continues_with_the_alpha_of_the_one_before(spark: SparkSession, tmp_path: Path):
    batches = late_rows(14, batches=8)
    write_batches(tmp_path / "in", batches[: LAST + 1])
    finish(splitting_job(spark, tmp_path))
    write_batches(tmp_path / "in", batches[LAST + 1 :], first=LAST + 1)
    _goes_on(spark, tmp_path, batches)


@pytest.mark.slow
def test_a_kill_keeps_alpha(spark: SparkSession, tmp_path: Path):
    batches = late_rows(14, batches=8)
    write_batches(tmp_path / "in", batches)
    assert_killed("tests.runtime.splitting_driver", tmp_path)
    _goes_on(spark, tmp_path, batches)


def _goes_on(spark: SparkSession, folder: Path, batches: list[pa.Table]) -> None:
    """Start again; the policy must continue where the ledger is, with an alpha that had moved, and answers be whole."""
    manifest = Ledger(DocumentStore.at(str(folder / "checkpoint")).child("skypane")).latest()
    assert manifest is not None
    assert manifest.batch_id == LAST
    state = manifest.control["splitting"]["state"]
    assert state["pid"]["alpha"] != 1.0
    assert state["relay"]["samples"] > 0, "in the midst of the relay's experiment"
    seen = finish(splitting_job(spark, folder))
    assert seen[0].batch_id == LAST + 1
    decided = seen[0].decision("splitting")
    assert decided is not None
    assert decided.value == "AS_PID"
    assert decided.figures["alpha"] == state["pid"]["alpha"]
    assert windows_of(parquet_rows(folder / "out")) == expected(Task(str(folder)).plan, batches)


def test_rows_go_to_the_owners_of_their_panes(spark: SparkSession):
    """A pane of several owners is spread over them by its shares; others have one owner; rows without a time have one too."""
    plan = Plan(Skyline(sp.low("price")), Windows.of("10 s"), "ts")
    rows = spark.range(6_000).selectExpr(
        "timestamp_seconds(10 * (id % 3) + id % 7) as ts", "cast(id as double) as price", "map('a', id) as tags"
    )
    rows = rows.unionByName(rows.limit(1).selectExpr("cast(null as timestamp) as ts", "price", "tags"))
    routing = Routing(4, {0: (Share(3, 100), Share(1, 300)), 2: (Share(0, 7),)})
    moved = routed(rows, plan.gate, routing).selectExpr(
        "floor(unix_seconds(ts) / 10) as pane", "spark_partition_id() as task"
    )
    found = {(row.pane, row.task): row["count"] for row in moved.groupBy("pane", "task").count().collect()}
    assert set(found) == {(0, 1), (0, 3), (1, 1), (2, 0), (None, 0)}
    assert found[1, 1] == found[2, 0] == 2_000
    assert found[0, 1] + found[0, 3] == 2_000
    assert found[0, 1] == pytest.approx(1_500, rel=0.1)


@pytest.mark.parametrize("windows", [Windows(10_000_000, 10_000_000), Windows(3, 2)], ids=["10 s", "microseconds"])
def test_rows_of_any_time_have_an_owner_however_far_they_are_from_panes_with_shares(
    spark: SparkSession, windows: Windows
):
    plan = Plan(Skyline(sp.low("price")), windows, "ts")
    times = ["0001-01-01", "1969-12-31 23:59:59", "1970-01-01", "2026-01-01", "9999-12-31"]
    rows = spark.createDataFrame([(text, 1.0) for text in times], "ts string, price double")
    rows = rows.selectExpr("cast(ts as timestamp) as ts", "price")
    routing = Routing(4, {0: (Share(3, 1),), 1: (Share(2, 1),)})
    assert routed(rows, plan.gate, routing).count() == len(times)


@pytest.mark.parametrize("damage", [
    {"workers": {"plq": 0, "wlq": 1}}, {"requested": None}, {"exchange": {"speed": 1}}, {"workers": {"plq": 1}},
])  # fmt: skip
def test_a_state_that_control_cannot_have_written_is_refused(damage: dict[str, Any]):
    with pytest.raises(CheckpointError, match="in the checkpoint"):
        CONTROL.restore(CONTROL.snapshot(CONTROL.init()) | damage)


def test_workers_belong_to_a_start_and_outlive_it(spark: SparkSession, tmp_path: Path):
    """scale() holds from the next batch on, and for later starts; a handle that has ended changes nothing."""
    batches = late_rows(3, batches=3)
    write_batches(tmp_path / "in", batches[:2])
    job = sp.stream(
        read_batches(spark, tmp_path / "in", batches[0].schema),
        sp.Skyline(sp.low("price")),
        time="ts",
        window="50 s",
        checkpoint=tmp_path / "checkpoint",
        output=sp.Memory(),
        workers=sp.WorkerOptions(plq_workers=2, wlq_workers=2),
    )
    used: list[Any] = []
    handles: list[sp.StreamHandle] = []
    started = threading.Event()

    def note(batch: sp.BatchMetrics) -> None:
        manifest = Ledger(DocumentStore.at(str(tmp_path / "checkpoint")).child("skypane")).latest()
        assert manifest is not None
        used.append(manifest.control["workers"])
        assert started.wait(60)
        if batch.batch_id == 0:
            handles[0].scale(plq=5)

    handles.append(job.start(trigger="available now", on_batch=note))
    started.set()
    assert handles[0].await_termination(120)
    handles[0].scale(plq=9)
    write_batches(tmp_path / "in", batches[2:], first=2)
    handles.append(job.start(trigger="available now", on_batch=note))
    assert handles[1].await_termination(120)
    assert used == [{"plq": plq, "wlq": 2} for plq in (2, 5, 5)]
