"""Workers and the control policies at the engine: what a batch gets, what is saved with it, what a restart makes of it."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.rows import multiset
from tests.runtime.control_driver import JOBS, LAST, choosing_job, dividing_job, splitting_job
from tests.runtime.driver import Task, assert_killed, job_of
from tests.runtime.streams import (
    CountBySensor,
    answers,
    expected,
    finish,
    late_rows,
    parquet_rows,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.control.costs import DEFAULT_COSTS
from skypane.control.exchange import AS_READ, CONFIRM, ExchangeState
from skypane.control.measurements import BatchMeasurements, PaneWork, RunWork, TaskWork
from skypane.control.parallelism import Workers
from skypane.control.predictions import ExpectedBatch, SourceSpread
from skypane.control.splitting import (
    POLICIES,
    AdaptiveSplitting,
    PidSplitting,
    Routing,
    Share,
    SplittingSample,
    UpcomingBatch,
    splitting,
)
from skypane.control.splitting.pid import FALLBACK
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.policy import Decision
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.control_loop import ControlLoop, ControlState
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.plq import routed
from skypane.runtime.spark.engine.utilization import period_of
from skypane.types import CheckpointError, ConfigError
from skypane.windows import Windows

CONTROL = ControlLoop(splitting("PB_RR"), Workers(2, 2))
GAINED = ControlLoop(PidSplitting(gains=FALLBACK), Workers(2, 2))
TENS = Plan(Skyline(sp.low("price")), Windows.of("10 s"), "ts")
KILLED = late_rows(14, batches=8)
"""What the streams read whose control goes on after a stop or a kill."""


def lopsided(
    *, exchanged: bool = False, merge_seconds: float = 0.0, interval: float | None = 4.0, sized: bool = False
) -> BatchMeasurements:
    """A batch in which one of two tasks had all the work."""
    busy = TaskWork(1_000, 3.0, (PaneWork(0, 600, 1.5), PaneWork(1, 400, 1.0)))
    return BatchMeasurements((busy, TaskWork(0, 0.0, ())), merge_seconds, interval, exchanged, sized=sized)


def after(control: ControlLoop, state: ControlState, *batches: BatchMeasurements) -> ControlState:
    """Return the state of a control that has decided on each of these batches, and has seen it."""
    for one in batches:
        state = control.observe(control.decide(state)[0], one)
    return state


def read_again(control: ControlLoop, state: ControlState) -> ControlState:
    """Return a state as it comes back from the ledger."""
    return control.restore(json.loads(json.dumps(control.snapshot(state))))


def last_batch(folder: Path) -> Manifest:
    """Return what the ledger of a stream has of its last batch."""
    manifest = Ledger(DocumentStore.at(str(folder / "checkpoint")).child("skypane")).latest()
    assert manifest is not None
    return manifest


def decision_of(batch: sp.BatchMetrics, what: str) -> Decision[Any]:
    decision = batch.decision(what)
    assert decision is not None
    return decision


@pytest.mark.parametrize("number", [0, -1, 1.5, "2", True, None])
def test_workers_are_whole_numbers_of_at_least_one(number: Any):
    with pytest.raises(ConfigError, match="wlq_workers must be a whole number of at least 1"):
        Workers(1, number)


def test_rows_stay_until_an_exchange_has_paid_several_times():
    states = [after(CONTROL, CONTROL.init(), *[lopsided()] * batches) for batches in range(CONFIRM + 1)]
    assert [CONTROL.decide(state)[1].routing for state in states] == [None] * CONFIRM + [Routing(2)]
    state, decided = CONTROL.decide(states[-1])
    assert decided.exchange.value
    assert CONTROL.observe(state, lopsided(exchanged=True)).exchange.age == 1


def test_the_exchange_policy_gets_the_growth_of_a_querys_partials():
    """A fifth of what 64 partitions cost to merge is saved of a skyline in eight dimensions; of a top-k nearly all."""
    panes = dict.fromkeys(range(10), 10_000)
    spread = SourceSpread(100_000, (0.1, 0.1), tuple(panes.values()), 640, merge_seconds=1.008, workers=2)
    saved = {}
    for query in (
        Skyline(sp.from_sense([f"c{at}" for at in range(8)], ["min"] * 8)),
        sp.TopK(5, "price"),
        CountBySensor(),
    ):
        setting = JobSettings(Plan(query, Windows.of("10 s"), "ts"), None, "", None, splitting("PB_RR"))  # type: ignore[arg-type]
        exchange = ControlLoop.of(setting, Workers(2, 2)).exchange
        _, decision = exchange.decide(exchange.observe(exchange.init(), spread), ExpectedBatch(panes, 2))
        saved[type(query).__name__] = decision.figures["saving"]
    assert saved == {
        "Skyline": pytest.approx(1 - 64**-0.24),
        "TopK": pytest.approx(1 - 1 / 64),
        "CountBySensor": pytest.approx(1 - 64**-0.25),  # is not known
    }


def test_a_job_with_other_numbers_of_workers_starts_with_them():
    """And one with the same numbers as before continues with those that scale() has set, and with all else."""
    scaled = replace(CONTROL.init(), workers=Workers(7, 1))
    other = ControlLoop(CONTROL.splitting, Workers(4, 2))
    assert other.restore(CONTROL.snapshot(scaled)) == other.init()
    state = CONTROL.observe(scaled, lopsided())
    assert read_again(CONTROL, state) == state


def test_a_splitting_policy_gets_its_state_back_and_another_starts_without():
    control = ControlLoop(PidSplitting(), Workers(2, 2))
    state = control.observe(control.init(), lopsided(exchanged=True))
    assert state.splitting["AS_PID"].rho is not None, "the policy has seen how hard the tasks worked"
    assert read_again(control, state) == state
    assert CONTROL.restore(control.snapshot(state)).splitting == CONTROL.init().splitting


def test_a_checkpoint_with_the_old_key_law_for_a_policy_is_read():
    """Those of version 0.2, which have the state of one splitting policy."""
    control = ControlLoop(PidSplitting(), Workers(2, 2), elastic=sp.Fuzzy(max_workers=8).scaling(Workers(2, 2)))
    state = control.observe(control.init(), lopsided(exchanged=True))
    snapshot = control.snapshot(state)
    snapshot["splitting"] = {"law": "AS_PID", "state": snapshot["splitting"]["AS_PID"]}
    snapshot["elastic"]["law"] = snapshot["elastic"].pop("policy")
    snapshot["asked"] = snapshot.pop("requested")
    assert control.restore(snapshot) == state
    chosen = replace(control, splitting=None).restore(snapshot)
    assert chosen.splitting["AS_PID"] == state.splitting["AS_PID"], "the choice continues with it"
    with pytest.raises(CheckpointError, match="the control state in the checkpoint cannot be read"):
        control.restore({**snapshot, "splitting": {"state": None}})


def test_a_source_that_sets_its_readers_gets_that_many_tasks():
    """The elastic policy knows what waited a batch ago; a number that the job itself gives holds all the same."""
    elastic = sp.Model(latency="5 seconds", max_workers=9).scaling(Workers(2, 1), 8)
    for limits, sized, tasks in ((False, False, 2), (False, True, None), (True, True, 2)):
        control = ControlLoop(splitting("PB_RR"), Workers(2, 1), elastic=elastic, limits=limits)
        state = control.observe(control.init(), lopsided(exchanged=True, sized=sized))
        state = control.observe(state, lopsided(exchanged=True))  # a batch that comes again is not measured
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
    known = control.policies["AS"].observe(state.splitting["AS"], SplittingSample(None, (100,) * 20))
    state = replace(state, splitting={"AS": known})
    _, decided = control.decide(state)
    assert decided.routing is not None
    assert decided.routing.owners(6) == (0,)
    assert decided.routing.owners(7) == (1, 0), "expected one pane on, and over the threshold"
    assert decided.splitting.value == "AS"
    assert decided.splitting.because.startswith("theta ")
    assert decided.splitting.figures["alpha"] == 1.0


def test_the_interval_of_a_batch_is_what_its_other_steps_leave():
    period, overloaded = (period_of(lopsided(merge_seconds=seconds)) for seconds in (1.0, 9.0))
    assert period is not None
    assert (period.seconds, period.sigma) == (3.0, 1.0)
    assert overloaded is not None
    assert overloaded.seconds > 0
    assert period_of(lopsided(interval=None)) is None


def test_a_clock_that_runs_backwards_measures_nothing_and_moves_nothing():
    state = GAINED.observe(GAINED.init(), lopsided(exchanged=True))
    assert period_of(lopsided(interval=-4.0)) is None
    moved = GAINED.observe(state, lopsided(exchanged=True, interval=-4.0))
    before, now = state.splitting["AS_PID"], moved.splitting["AS_PID"]
    assert (now.pid, now.rho) == (before.pid, before.rho)


def test_a_batch_longer_than_its_interval_lowers_alpha_and_a_restart_continues_with_it():
    """Rows of two seconds that took three: the stage is overloaded, and panes are split more from now on."""
    overloaded = lopsided(exchanged=True, interval=2.0)
    state = GAINED.observe(GAINED.init(), overloaded)
    assert state.splitting["AS_PID"].rho > 1
    restored = read_again(GAINED, state)
    assert restored.splitting["AS_PID"].pid.alpha == state.splitting["AS_PID"].pid.alpha < 1
    assert GAINED.observe(restored, overloaded) == GAINED.observe(state, overloaded)


def test_a_start_continues_with_the_alpha_of_the_one_before(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", KILLED[: LAST + 1])
    finish(splitting_job(spark, tmp_path))
    write_batches(tmp_path / "in", KILLED[LAST + 1 :], first=LAST + 1)
    _goes_on(spark, tmp_path)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of streams that were killed together, each after the same batch."""
    folder = tmp_path_factory.mktemp("killed")
    for name in JOBS:
        (folder / name).mkdir()
        write_batches(folder / name / "in", KILLED)
    assert_killed("tests.runtime.control_driver", folder)
    return folder


@pytest.mark.slow
def test_a_kill_keeps_alpha(spark: SparkSession, killed: Path):
    _goes_on(spark, killed / "splitting")


@pytest.mark.slow
def test_a_kill_keeps_the_choice(spark: SparkSession, killed: Path):
    _chooses_on(spark, killed / "choosing")


@pytest.mark.slow
def test_a_kill_keeps_what_runs_took(spark: SparkSession, killed: Path):
    folder = killed / "dividing"
    assert _left_in(folder)["windows"]["runs"] > 0
    seen = finish(dividing_job(spark, folder))
    decided = [decision for metrics in seen if (decision := metrics.decision("windows")) is not None]
    assert decided
    assert all(decision.figures for decision in decided)
    found, wanted = parquet_rows(folder / "out"), answers(Task(str(folder)).plan, KILLED)
    assert multiset(found) == multiset(wanted)


def _left_in(folder: Path) -> dict[str, Any]:
    """The state of control that the first driver left, with its last batch."""
    manifest = last_batch(folder)
    assert manifest.batch_id == LAST
    return manifest.control


def _goes_on(spark: SparkSession, folder: Path) -> None:
    """Start again; the policy must continue where the ledger is, with an alpha that had moved, and answers be whole."""
    state = _left_in(folder)["splitting"]["AS_PID"]
    assert state["pid"]["alpha"] != 1.0
    assert state["relay"]["samples"] > 0, "in the midst of the relay's experiment"
    seen = finish(splitting_job(spark, folder))
    assert seen[0].batch_id == LAST + 1
    decided = decision_of(seen[0], "splitting")
    assert decided.value == "AS_PID"
    assert decided.figures["alpha"] == state["pid"]["alpha"]
    assert windows_of(parquet_rows(folder / "out")) == expected(Task(str(folder)).plan, KILLED)


def test_a_choice_holds_on_spark_and_over_a_restart(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", KILLED[: LAST + 1])
    ways = [(metrics.exchange, metrics.splitting) for metrics in finish(choosing_job(spark, tmp_path))]
    assert ways == [(False, AS_READ)] * CONFIRM + [(True, "TB_RR")] * (LAST + 1 - CONFIRM)
    write_batches(tmp_path / "in", KILLED[LAST + 1 :], first=LAST + 1)
    _chooses_on(spark, tmp_path)


def _chooses_on(spark: SparkSession, folder: Path) -> None:
    """Start again; rows are exchanged from the first batch on, by what the ledger has of the source."""
    assert _left_in(folder)["exchange"]["source"]["partitions"] == 1
    seen = finish(choosing_job(spark, folder))
    assert [(batch.batch_id, batch.splitting) for batch in seen] == [(LAST + 1, "TB_RR"), (LAST + 2, "TB_RR")]
    decided = decision_of(seen[0], "exchange")
    assert decided.value is True
    assert decided.because.startswith("TB_RR for balance")
    assert decided.figures["TB_RR"] < decided.figures["as read"]
    assert windows_of(parquet_rows(folder / "out")) == expected(Task(str(folder)).plan, KILLED)


def one_pane(number: int, loads: tuple[int, ...], *, exchanged: bool) -> BatchMeasurements:
    """Return what a batch of one pane shows whose rows were lifted so, at 1.2 us a row."""
    tasks = tuple(TaskWork(rows, rows * 1.2e-6, (PaneWork(number, rows, rows * 1.2e-6),)) for rows in loads if rows)
    cost = DEFAULT_COSTS.exchanging(sum(loads)) if exchanged else 0.0
    lift = max(loads) * 1.2e-6 + cost
    return BatchMeasurements(tasks, 0.02, 10.0, exchanged, (RunWork(1, 0.02),), lift)


def after_single_panes(control: ControlLoop, batches: int, rows: int) -> tuple[ControlState, list[tuple[str, float]]]:
    """Return the state after a stream of one source partition and one pane a batch; the way of each batch, and its seconds."""
    state, ways = control.init(), list[tuple[str, float]]()
    for number in range(batches):
        state, decided = control.decide(state)
        routing = decided.routing
        loads = (rows,) if routing is None else routing.rows_by_worker({number: rows})
        measured = one_pane(number, loads, exchanged=routing is not None)
        ways.append((decided.splitting.value if routing else AS_READ, measured.lift_seconds))
        state = control.observe(state, measured)
    return state, ways


def seconds_of_one_pane(name: str | None) -> list[tuple[str, float]]:
    control = ControlLoop(None if name is None else splitting(name), Workers(16, 16))
    return after_single_panes(control, 60, 1_000_000)[1]


@pytest.mark.parametrize("name", ["PB_RR", "AS", "AS_PID"])
def test_a_policy_that_leaves_a_batch_to_one_worker_does_not_route_it(name: str):
    """Each pane has one owner, so an exchange balances nothing: 1.2 s as read, 1.61 s routed."""
    ways, seconds = zip(*seconds_of_one_pane(name), strict=True)
    assert set(ways) == {AS_READ}
    assert seconds == pytest.approx([1.2] * 60)


def test_a_single_pane_is_routed_row_by_row_whether_that_is_set_or_chosen():
    """0.075 s on each of 16 workers, and 0.41 s for the exchange; all but the batches that measure the source."""
    for name in ("TB_RR", None):
        ways = seconds_of_one_pane(name)
        assert {way for way, _ in ways} == {AS_READ, "TB_RR"}
        assert [way for way, _ in ways].count(AS_READ) == CONFIRM + 1
        assert all(seconds == pytest.approx(0.485) for way, seconds in ways if way == "TB_RR")


def test_many_panes_that_a_source_cuts_are_kept_whole():
    """Of 64 even partitions, each with all of 32 panes: balance saves nothing, whole panes nearly all of the merges."""
    control = ControlLoop(None, Workers(16, 16), growth=0.0)
    task = TaskWork(3_200, 0.01, tuple(PaneWork(pane, 100, 0.0003) for pane in range(32)))
    shown = BatchMeasurements((task,) * 64, 4.0, 10.0, exchanged=False, lift_seconds=0.05)
    _, decided = control.decide(after(control, control.init(), *[shown] * CONFIRM))
    assert (decided.exchange.value, decided.splitting.value, decided.routing) == (True, "PB_RR", Routing(16))
    assert decided.exchange.because.startswith("PB_RR for fewer merges")


def test_a_large_pane_among_small_ones_is_split_where_merges_are_dear():
    """TB_RR would split all panes, PB_RR none: AS splits the one of 800,000 rows, as its workers cost more than its merges."""
    control = ControlLoop(None, Workers(8, 8), growth=0.5)
    panes = (*(PaneWork(pane, 10_000, 0.01) for pane in range(20)), PaneWork(20, 800_000, 0.8))
    shown = BatchMeasurements((TaskWork(1_000_000, 2.0, panes),), 1.0, 10.0, exchanged=False, lift_seconds=2.1)
    _, decided = control.decide(after(control, control.init(), *[shown] * CONFIRM))
    assert decided.splitting.value == "AS"
    figures = decided.exchange.figures
    assert figures["AS"] < min(figures[name] for name in ("as read", "PB_RR", "TB_RR"))
    assert decided.splitting.figures["sigma"] > 1


def test_a_choice_among_very_many_panes_is_made_without_a_division_of_each():
    control = ControlLoop(None, Workers(16, 16))
    task = TaskWork(2_000_000, 2.0, tuple(PaneWork(pane, 1_000, 0.001) for pane in range(2_000)))
    state = control.observe(control.init(), BatchMeasurements((task,), 1.0, 10.0, exchanged=False))
    figures = control.decide(state)[1].exchange.figures
    assert {"PB_RR", "TB_RR"} <= set(figures)
    assert not {"AS", "AS_PID"} & set(figures)


def test_a_policy_learns_the_sizes_of_partitions_that_it_made_and_of_whole_panes_else():
    control = ControlLoop(None, Workers(2, 2))
    half = TaskWork(500, 1.0, (PaneWork(0, 500, 1.0),))
    cut = BatchMeasurements((half, half), 0.0, 4.0, exchanged=True)
    for name, sizes in (("AS", (500, 500)), ("TB_RR", (1_000,))):
        state = control.observe(replace(control.init(), routed_by=name), cut)
        assert state.splitting["AS"].sizes == sizes
        assert state.splitting["AS_PID"].rho is not None, "how hard the workers worked is the same for all"
        assert state.routed_by is None


def test_the_state_of_a_choice_comes_back_from_the_ledger_and_decides_alike():
    control = ControlLoop(None, Workers(2, 2))
    state, _ = after_single_panes(control, CONFIRM + 2, 10**7)
    restored = read_again(control, state)
    assert restored == state
    assert control.decide(restored) == control.decide(state)
    assert control.decide(restored)[1].splitting.value == "TB_RR"
    assert CONTROL.restore(control.snapshot(state)).splitting == CONTROL.init().splitting, "one that is set now"


def test_a_checkpoint_of_one_policy_continues_by_choice():
    """A checkpoint of version 0.2, in which rows were exchanged; its source is measured again in time."""
    control = ControlLoop(None, Workers(2, 2))
    snapshot = control.snapshot(control.init())
    snapshot["splitting"] = {"policy": "PB_RR", "state": {}}
    snapshot["exchange"] = {"needed": True, "because": "it paid", "age": 7, "confirmed": CONFIRM}
    _, decided = control.decide(control.restore(snapshot))
    assert (decided.routing, decided.splitting.value, decided.exchange.because) == (Routing(2), "PB_RR", "it paid")


@pytest.mark.parametrize("name", POLICIES)
def test_predicted_loads_are_those_of_the_routed_rows(name: str, spark: SparkSession):
    """Panes of unequal size on three workers, the large one split; a hash meets shares to within a slot of 64."""
    control = ControlLoop(splitting(name), Workers(3, 1))
    panes = {0: 4_000, 1: 200, 2: 600, 3: 200}
    policy = control.policies[name]
    state = policy.observe(policy.init(), SplittingSample(None, (500, 500)))
    routing = policy.decide(state, UpcomingBatch(panes, 3, open_from=4))[1].value
    bounds = [sum(list(panes.values())[: at + 1]) for at in range(len(panes))]
    pane = "case " + " ".join(f"when id < {bound} then {at}" for at, bound in enumerate(bounds)) + " end"
    rows = spark.range(sum(panes.values())).selectExpr(
        f"timestamp_seconds(10 * ({pane})) as ts", "cast(id as double) as price"
    )
    moved = routed(rows, TENS.gate, routing).selectExpr("spark_partition_id() as task").groupBy("task").count()
    found = {row.task: row["count"] for row in moved.collect()}
    assert sum(found.values()) == sum(panes.values())
    for worker, load in enumerate(routing.rows_by_worker(panes)):
        assert found.get(worker, 0) == pytest.approx(load, abs=sum(panes.values()) / 20 if routing.shares else 3)


def test_rows_go_to_the_owners_of_their_panes(spark: SparkSession):
    """A pane of several owners is spread over them by its shares; others have one owner; rows without a time have one too."""
    rows = spark.range(6_000).selectExpr(
        "timestamp_seconds(10 * (id % 3) + id % 7) as ts", "cast(id as double) as price", "map('a', id) as tags"
    )
    rows = rows.unionByName(rows.limit(1).selectExpr("cast(null as timestamp) as ts", "price", "tags"))
    routing = Routing(4, {0: (Share(3, 100), Share(1, 300)), 2: (Share(0, 7),)})
    moved = routed(rows, TENS.gate, routing).selectExpr(
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
    {"splitting": None}, {"splitting": {"PB_RR": {"alpha": 1}}},
])  # fmt: skip
def test_a_state_that_control_cannot_have_written_is_refused(damage: dict[str, Any]):
    with pytest.raises(CheckpointError, match="in the checkpoint"):
        CONTROL.restore(CONTROL.snapshot(CONTROL.init()) | damage)


def test_workers_belong_to_a_start_and_outlive_it(spark: SparkSession, tmp_path: Path):
    """scale() holds from the next batch on, and for later starts; a handle that has ended changes nothing."""
    batches = late_rows(3, batches=3)
    write_batches(tmp_path / "in", batches[:2])
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=2)
    job = job_of(spark, Task(str(tmp_path), late=False), workers=workers)
    used: list[Any] = []
    handles: list[sp.StreamHandle] = []
    started = threading.Event()

    def note(batch: sp.BatchMetrics) -> None:
        used.append(last_batch(tmp_path).control["workers"])
        assert started.wait(60)
        if batch.batch_id == 0:
            handles[0].scale(plq=5)

    handles.append(job.start(trigger="available now", on_batch=note))
    with pytest.raises(ConfigError, match="plq_workers must be a whole number of at least 1, got 0"):
        handles[0].scale(plq=0)
    started.set()
    assert handles[0].await_termination(120)
    handles[0].scale(plq=9)
    write_batches(tmp_path / "in", batches[2:], first=2)
    handles.append(job.start(trigger="available now", on_batch=note))
    assert handles[1].await_termination(120)
    assert used == [{"plq": plq, "wlq": 2} for plq in (2, 5, 5)]
