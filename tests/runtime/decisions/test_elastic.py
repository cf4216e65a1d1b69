"""Elastic workers in the engine: decided between batches, kept in the ledger, reported; answers are the oracle's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.decisions.test_control_loop import after, last_batch, read_again
from tests.runtime.driver import SKYLINE, WINDOWS, Task, assert_killed
from tests.runtime.elastic_driver import LAST, CostOption, Laborious, elastic_job
from tests.runtime.streams import (
    SECOND,
    expected,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.control.costs import Costs
from skypane.control.elasticity.fuzzy import FuzzyController
from skypane.control.exchange import Exchange, ExchangeState
from skypane.control.measurements import BatchMeasurements, PaneWork, RunWork, TaskWork
from skypane.control.monitoring import SamplingPeriod
from skypane.control.parallelism import Workers
from skypane.control.placement import place_windows
from skypane.control.splitting import PidSplitting, splitting
from skypane.plan import Plan
from skypane.runtime.spark.engine import window_program
from skypane.runtime.spark.engine.control_loop import BatchDecisions, ControlLoop, ControlState
from skypane.runtime.spark.engine.utilization import stages_of, window_period_of
from skypane.types import CheckpointError, ConfigError, Length
from skypane.windows import Windows

PAPER: dict[str, Any] = {"controller": FuzzyController(), "catch_up": None}
FUZZY = sp.Fuzzy(max_workers=16, every=2, **PAPER)
FOUR = Workers(4, 4)
PLAIN = ControlLoop(splitting("PB_RR"), FOUR)
PROGRESS = sp.Watermark("20 seconds")


def controlled(elastic: Any = FUZZY, requested: Workers = FOUR) -> ControlLoop:
    return ControlLoop(splitting("PB_RR"), requested, elastic=elastic.scaling(requested))


def batch(busy: float, *, tasks: int = 4, runs: int = 4, exchanged: bool = False) -> BatchMeasurements:
    """A batch of ten seconds whose tasks were busy for so long, and whose windows, twenty, took a second."""
    task = TaskWork(1_000, busy, (PaneWork(0, 600, busy / 2), PaneWork(1, 400, busy / 2)))
    run = RunWork(20 // runs, 1.0)
    return BatchMeasurements((task,) * tasks, 1.0, 10.0, exchanged, runs=(run,) * runs, lift_seconds=busy)


def decided(control: ControlLoop, *batches: BatchMeasurements) -> tuple[ControlState, BatchDecisions]:
    """Return the state and the decisions of a new query after these batches."""
    return control.decide(after(control, control.init(), *batches))


def stages(of: BatchMeasurements) -> tuple[SamplingPeriod, SamplingPeriod]:
    """Return what a batch shows of both levels."""
    shown = stages_of(of)
    assert shown.plq is not None
    assert shown.wlq is not None
    return shown.plq, shown.wlq


def test_workers_follow_at_the_end_of_a_control_interval():
    control = controlled()
    state = after(control, control.init(), batch(18.0))
    assert control.decide(state)[1].workers == Workers(4, 4)
    assert control.explained(state) == "PLQ 4, WLQ 4: 1 of 2 batches measured, no decision yet"
    state, steering = control.decide(after(control, state, batch(18.0)))
    assert steering.workers == state.workers == Workers(5, 6)
    assert steering.elastic is not None
    assert steering.elastic.because == control.explained(state)
    assert control.explained(state).startswith("PLQ slow 1.00 (rho 1.90), splitting moderate 1.00")


def test_few_workers_need_no_exchange():
    """A task then reads several of the source's partitions; as requested by default, they are left as they are."""
    control = controlled(sp.Fuzzy(max_workers=16, every=2, cooldown=0))
    _, steering = decided(control, batch(0.1), batch(0.1))
    assert (steering.routing, steering.tasks) == (None, 2)
    assert PLAIN.decide(PLAIN.init())[1].tasks is None
    assert PLAIN.decide(PLAIN.scaled(PLAIN.init(), Workers(3, 4)))[1].tasks == 3
    assert replace(PLAIN, limits=True).decide(PLAIN.init())[1].tasks == 4


def test_both_stages_share_the_interval():
    """Ten seconds, of which the windows took one and the panes five: nine are left for panes, five for windows."""
    plq, wlq = stages(batch(5.0))
    assert (plq.seconds, wlq.seconds) == (9.0, 5.0)
    assert plq.sigma is None, "the source cut the panes, not the policy"
    assert stages(batch(5.0, exchanged=True))[0].sigma == 4.0
    assert window_period_of(replace(batch(5.0), interval=None)) is None


def test_a_slow_pane_level_does_not_make_little_windows_slow():
    """Rows of ten seconds took thirty, and a second went to windows: each stage has its share of the ten."""
    late = replace(batch(30.0, runs=1), lift_seconds=30.0)
    assert tuple(stage.seconds for stage in stages(late)) == pytest.approx((10 * 30 / 31, 10 / 31))
    needed = round(4 * 3.1 / 0.9)  # as many as its work needs, not a quarter more for the windows' sake
    assert decided(controlled(sp.Fuzzy(max_workers=64, every=1)), late)[0].workers.plq == needed


def test_rows_that_came_while_a_batch_lasted_too_long_wait():
    """100,000 rows in ten seconds; the batch took four more than the trigger allows."""
    late = replace(batch(5.0), overrun=4.0)
    arrived = sum(task.rows for task in late.tasks)
    assert stages_of(late).backlog == round(0.4 * arrived)
    reported = replace(late, backlog=7)
    assert stages_of(reported).backlog == round(0.4 * arrived) + 7, "beside those that the source reports"
    assert stages_of(replace(late, interval=None)).backlog == 0
    control = controlled(sp.Fuzzy(max_workers=64, every=1))
    assert "rows wait" in control.explained(decided(control, late)[0])


def test_a_batch_without_a_window_gives_no_figures_of_the_window_level():
    none_due = replace(batch(18.0), runs=(RunWork(0, 1e-4),))
    assert (stages_of(none_due).wlq, stages_of(none_due).used_wlq) == (None, None)
    assert decided(controlled(sp.Fuzzy(max_workers=16, every=1)), none_due)[0].workers == Workers(8, 4)


def test_rows_that_wait_at_the_source_are_to_be_worked_off_within_the_bound():
    """Ten times as many rows wait as came: the model has more workers for them, within a bound of a second."""
    control = controlled(sp.Model(max_workers=64, every=1, cooldown=0, latency="1 second"), Workers(2, 2))
    calm, busy = batch(5.0), replace(batch(5.0), backlog=100_000_000)
    without, within = (decided(control, one, one)[0].workers for one in (calm, busy))
    assert within.plq > without.plq
    assert stages_of(busy).backlog == 100_000_000


def stepped(option: Any, *, most: int = 8, step: float = 50.0, trigger: float = 3.0) -> tuple[float, list[float]]:
    """Return the worker-seconds over those of `most`, and the seconds of the last batch of each step.

    A rate of x1, x4, x1, x8, x1, of which x1 is half of what a worker can do; a batch has the rows of the interval before it,
    and takes 0.8 s beside them.
    """
    control, rates = controlled(option, Workers(1, 1)), (0.5, 2.0, 0.5, 4.0, 0.5)
    state, began, interval, work, used = control.init(), 0.0, None, 0.0, 0.0
    lasts = [0.0] * len(rates)
    while began < step * len(rates):
        state, steering = control.decide(state)
        tasks = steering.workers.plq
        took = 0.8 + work / tasks
        task = TaskWork(round(50 * work / tasks), work / tasks, ())
        shown = BatchMeasurements(
            (task,) * tasks, 0.1, interval, exchanged=False, runs=(RunWork(2, 0.1),), lift_seconds=work / tasks,
            overrun=max(0.0, took - trigger),
        )  # fmt: skip
        state = control.observe(state, shown)
        interval = max(took, trigger)
        at = min(int(began / step), len(rates) - 1)
        lasts[at] = took
        work = sum(
            rates[min(int((began + part * interval / 100) / step), len(rates) - 1)] * interval / 100
            for part in range(100)
        )
        used += tasks * interval
        began += interval
    return used / (most * began), lasts


def test_workers_that_follow_a_rate_in_steps_leave_no_backlog_and_take_few_worker_seconds():
    bounds: dict[str, Any] = {"max_workers": 16, "max_plq": 8, "max_wlq": 1}
    for option in (sp.Fuzzy(**bounds), sp.Model(**bounds), sp.Threshold(**bounds)):
        used, lasts = stepped(option)
        assert used < 0.4, option
        assert max(lasts) < 6.0, f"{option}: a batch is no longer than two intervals of the trigger when a step ends"
    assert max(stepped(sp.Fuzzy(**bounds, every=2, **PAPER))[1]) > 20.0, "the paper's factors, a batch after the other"


def test_workers_without_work_are_known_where_rows_are_exchanged():
    """Where they are read, the source says which task has rows; runs of windows are cut here."""
    idle = replace(batch(8.0, exchanged=True), runs=(RunWork(4, 1.8),) * 2)
    idle = replace(idle, tasks=(*idle.tasks, TaskWork(0, 0.0, ())))
    shown = stages_of(idle)
    assert (len(idle.tasks), shown.used_plq, shown.used_wlq) == (5, 4, 2)
    assert stages_of(batch(5.0)).used_plq is None
    control = controlled(sp.Fuzzy(max_workers=16, every=1, idle_timeout=2, cooldown=0), Workers(5, 4))
    state, _ = decided(control, idle, idle)
    assert state.workers == Workers(4, 2)
    assert control.explained(state).endswith(
        "1 of 5 PLQ workers got no work; 2 of 4 WLQ workers got no work; made PLQ 4, WLQ 2"
    )


def test_no_more_window_workers_than_there_are_windows():
    control = controlled(sp.Fuzzy(max_workers=40, every=1))
    state, steering = decided(control, replace(batch(40.0), runs=(RunWork(1, 9.0),) * 4))
    assert steering.workers.wlq == 4
    assert "the WLQ had 4 windows at once, at most" in control.explained(state)


def test_a_dry_run_reports_and_changes_nothing():
    control = controlled(sp.Fuzzy(max_workers=16, every=1, dry_run=True, **PAPER))
    state, steering = decided(control, batch(18.0))
    assert steering.workers == Workers(4, 4)
    assert "PLQ 4 -> 5, WLQ 4 -> 6; dry run: not done" in control.explained(state)
    assert control.decide(control.scaled(state, Workers(9, 2)))[1].workers == Workers(9, 2), "scale() does what it says"


def test_scale_holds_until_the_next_decision_which_continues_from_there():
    control = controlled(sp.Fuzzy(max_workers=16, every=2))
    state = control.scaled(after(control, control.init(), batch(18.0)), Workers(2, 9))
    state = after(control, state, batch(18.0, tasks=2))
    assert state.workers == Workers(2, 9), "the interval began anew"
    state = after(control, state, batch(18.0, tasks=2))
    assert control.decide(state)[1].workers.plq == 3
    with pytest.raises(ConfigError, match=r"PLQ 2 and WLQ 15 workers are out of the bounds of elastic=.*16 together"):
        control.scaled(state, Workers(2, 15))


def test_splitting_keeps_its_alpha_when_workers_change():
    """The first level goes on from what it has found: rows go to as many workers as the second level allows."""
    control = replace(controlled(sp.Fuzzy(max_workers=16, every=3, **PAPER)), splitting=PidSplitting())
    state = replace(control.init(), exchange=ExchangeState(needed=True))
    state = after(control, state, *[batch(18.0, exchanged=True)] * 3)
    policy = control.policies["AS_PID"]
    before = policy.alpha(state.splitting["AS_PID"])  # type: ignore[attr-defined]
    assert before < 1, "more splitting: panes are too much for one worker"
    state, steering = control.decide(state)
    assert steering.routing is not None
    assert steering.routing.workers == steering.workers.plq == 5
    assert all(share.worker < 5 for shares in steering.routing.shares.values() for share in shares)
    assert policy.alpha(state.splitting["AS_PID"]) == before  # type: ignore[attr-defined]


@pytest.mark.parametrize("option", [
    sp.Fuzzy(max_workers=16, every=4), sp.Model(max_workers=16, every=4), sp.Threshold(max_workers=16, every=4),
], ids=lambda option: type(option).__name__)  # fmt: skip
@pytest.mark.parametrize("batches", range(9))
def test_a_restart_at_any_batch_decides_as_if_there_had_been_none(option: Any, batches: int):
    control = controlled(option)
    shown = [batch(busy) for busy in (18.0, 3.0, 0.1, 9.0, 20.0, 20.0, 20.0, 20.0, 20.0)]
    state = after(control, control.init(), *shown[:batches])
    restored = read_again(control, state)
    assert restored == state
    assert after(control, restored, *shown[batches:]) == after(control, state, *shown[batches:])


def test_options_of_a_job_override_what_the_policy_had_found():
    control = controlled()
    grown = control.snapshot(after(control, control.init(), *[batch(18.0)] * 3))
    assert control.restore(grown).workers == Workers(5, 6)
    assert controlled(requested=Workers(2, 2)).restore(grown).workers == Workers(2, 2), "other numbers are requested"
    assert replace(control, elastic=None).restore(grown).workers == Workers(4, 4), "nothing changes them any more"
    narrow = controlled(sp.Fuzzy(max_workers=16, every=2, max_wlq=4, **PAPER))
    assert narrow.restore(grown).workers == Workers(5, 4), "within bounds that are narrower now"
    other = controlled(sp.Threshold(max_workers=16)).restore(grown)
    assert (other.workers, other.elastic and other.elastic.because) == (Workers(5, 6), ""), "another policy begins anew"
    assert control.restore(PLAIN.snapshot(PLAIN.scaled(PLAIN.init(), Workers(3, 2)))).workers == Workers(3, 2)
    assert PLAIN.explained(PLAIN.init()) == "PLQ 4, WLQ 4: as requested; no policy changes them (elastic=None)"


def test_a_damaged_state_of_the_policy_is_named():
    control = controlled()
    snapshot = control.snapshot(control.init())
    snapshot["elastic"]["state"]["stable"] = "long"
    complaint = "ElasticState in the checkpoint: stable: need a whole number, got 'long'"
    with pytest.raises(CheckpointError, match=complaint):
        control.restore(snapshot)


def job_of(spark: SparkSession, folder: Path, batches: list[pa.Table], **options: Any) -> sp.Job:
    return sp.stream(
        read_batches(spark, folder / "in", batches[0].schema, files=options.pop("files", 1)),
        options.pop("query", SKYLINE),
        time="ts",
        window=Length(WINDOWS.length),
        slide=Length(WINDOWS.slide),
        progress=PROGRESS,
        checkpoint=folder / "checkpoint",
        output=folder / "out",
        **options,
    )


@pytest.mark.parametrize(("options", "message"), [
    ({"elastic": "fuzzy"}, r"elastic must be Fuzzy\(\) or Model\(\) or Threshold\(\), with max_workers=, or None"),
    ({"workers": sp.WorkerOptions(elastic=FUZZY, plq_workers=16)}, "plq_workers=16 is where elastic= begins, and its bounds allow 15"),
])  # fmt: skip
def test_what_a_job_cannot_begin_with_is_refused(options: Any, message: str, spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", late_rows(3, batches=1))
    with pytest.raises(ConfigError, match=message):
        job_of(spark, tmp_path, late_rows(3, batches=1), **options)


def laborious(batches: list[pa.Table], hundredths: list[int]) -> list[pa.Table]:
    """Return the batches with prices that say how long each takes to lift."""
    at = batches[0].schema.get_field_index("price")
    return [
        table.set_column(at, "price", pa.array([float(work)] * table.num_rows))
        for table, work in zip(batches, hundredths, strict=True)
    ]


def test_workers_come_and_go_with_the_load(monkeypatch: pytest.MonkeyPatch, spark: SparkSession, tmp_path: Path):
    """Heavy batches, then light ones: n and m are those that really lifted and answered, and nothing else changes."""
    monkeypatch.setattr(Exchange, "init", lambda _: ExchangeState(needed=True, because="the test needs it"))
    monkeypatch.setattr(window_program, "place_windows", lambda due, _: place_windows(due, Costs(job=0.0)))
    batches = laborious(late_rows(11, batches=7, start=1_000 * SECOND), [8] * 4 + [0] * 3)
    write_batches(tmp_path / "in", batches)
    query, plan = Laborious(), Plan(Laborious(), Windows(50 * SECOND, 20 * SECOND), "ts", PROGRESS)
    workers = sp.WorkerOptions(plq_workers=1, wlq_workers=1, elastic=CostOption(max_workers=6, every=1, cooldown=0))
    seen = finish(job_of(spark, tmp_path, batches, query=query, workers=workers))
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan, batches)
    used = [metrics.workers["plq"] for metrics in seen]
    assert used == [1, 1, 3, 3, 3, 1, 1], "the length of the first interval is not known"
    assert [metrics.plq_workers for metrics in seen] == used, "those there may be are those there are"
    assert all(metrics.wlq_workers <= metrics.workers["wlq"] for metrics in seen)
    decisions = [metrics.decision("workers") for metrics in seen]
    assert decisions[0] is None
    assert all(one is not None and "s a row, 6 at most" in one.because for one in decisions[2:])


def test_a_job_with_fewer_workers_than_partitions_lifts_in_fewer_tasks(spark: SparkSession, tmp_path: Path):
    """Six files in a batch, read by two tasks, without an exchange."""
    batches = late_rows(12, batches=3)
    write_batches(tmp_path / "in", batches, files=6)
    spark.conf.set("spark.sql.files.openCostInBytes", "1g")  # a partition for each file
    try:
        workers = sp.WorkerOptions(plq_workers=2, wlq_workers=2, elastic=sp.Fuzzy(max_workers=4, every=10))
        job = job_of(spark, tmp_path, batches, files=6, workers=workers)
        handle = job.start(trigger="available now")
        assert handle.await_termination(120)
    finally:
        spark.conf.unset("spark.sql.files.openCostInBytes")
    seen = handle.recent_metrics()
    assert [(metrics.plq_workers, metrics.exchange) for metrics in seen] == [(2, False)] * 3
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(Plan(SKYLINE, WINDOWS, "ts", PROGRESS), batches)
    assert handle.explain().splitlines()[0] == "workers: PLQ 2, WLQ 2: 3 of 10 batches measured, no decision yet"
    with pytest.raises(ConfigError, match="out of the bounds of elastic="):
        handle.scale(plq=4)


@pytest.mark.slow
def test_a_kill_keeps_the_workers_and_what_the_policy_had_seen(spark: SparkSession, tmp_path: Path):
    batches = late_rows(13, batches=6)
    write_batches(tmp_path / "in", batches)
    assert_killed("tests.runtime.elastic_driver", tmp_path)
    manifest = last_batch(tmp_path)
    assert manifest.batch_id == LAST
    found = manifest.control
    assert found["elastic"]["state"]["sums"]["samples"] == 1, "one batch into the second interval"
    assert found["elastic"]["state"]["because"].startswith("rho of ")
    job = elastic_job(spark, tmp_path)
    seen = finish(job)
    assert seen[0].batch_id == LAST + 1
    assert seen[0].workers == found["workers"]
    assert seen[0].decision("workers") is None, "the interval goes on where it was"
    assert seen[1].decision("workers") is not None
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(Task(str(tmp_path)).plan, batches)
