"""What a stream learns of its costs: simulated streams, and a real one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.runtime.decisions.test_control_loop import CONTROL, decision_of, last_batch, read_again
from tests.runtime.driver import Task, job_of
from tests.runtime.streams import finish, late_rows, write_batches

import skypane as sp
from skypane.control.cost_learning import ENOUGH
from skypane.control.costs import DEFAULT_COSTS
from skypane.control.exchange import CONFIRM, PROBE_EVERY, TRIAL
from skypane.control.measurements import BatchMeasurements, PaneWork, RunWork, TaskWork
from skypane.control.placement import DueWindows, place_windows
from skypane.runtime.spark.engine.control_loop import ControlState

ROWS = 10_000


@dataclass(frozen=True)
class SetUp:
    """A set-up on which a stream runs, whose source has one partition, and whose batches have two panes.

    busy      seconds to lift a batch, for one task
    exchange  seconds of an exchange
    job       overhead of a stage
    windows   seconds of the driver for ten windows of a million rows
    cold      seconds more of the first batch, and of the first with an exchange
    """

    busy: float = 0.4
    exchange: float = 0.06
    job: float = 0.15
    windows: float = 0.4
    cold: float = 5.0

    def run(
        self, batches: int, state: ControlState | None = None, learn: bool = True
    ) -> tuple[list[bool], ControlState]:
        """Return which batches were exchanged, and the state after them."""
        state, done = CONTROL.init() if state is None else state, list[bool]()
        for _ in range(batches):
            state, decided = CONTROL.decide(state)
            measured = self.batch(state, first=not done, compiled=any(done))
            done.append(decided.exchange.value)
            after = CONTROL.observe(state, measured)
            state = after if learn else replace(after, costs=state.costs)
        return done, state

    def batch(self, state: ControlState, *, first: bool, compiled: bool) -> BatchMeasurements:
        """Return what a batch shows that runs as control decides."""
        _, decided = CONTROL.decide(state)
        due = DueWindows(10, 1_000_000, 1, 2)
        place = place_windows(due, decided.costs.value).value
        moved = decided.exchange.value
        shares = (0.5, 0.5) if moved else (1.0, 0.0)
        rows = [round(ROWS * share) for share in shares]
        both = tuple(PaneWork(pane, ROWS // 2, 0.0) for pane in range(2))
        panes = [both[:1], both[1:]] if moved else [both, ()]
        tasks = tuple(map(TaskWork, rows, (self.busy * share for share in shares), panes))
        lift = self.job + max(task.busy for task in tasks) + moved * self.exchange
        lift += self.cold * (first or (moved and not compiled))
        runs = tuple(RunWork(10 // place.tasks, self.windows / place.tasks) for _ in range(place.tasks))
        merge = runs[0].busy + (self.job if place.where == "spark" else 0.0)
        interval = None if first else 2.0
        return BatchMeasurements(tasks, merge, interval, moved, runs, lift, due=due, where=place.where)


def test_where_an_exchange_costs_a_second_rows_are_soon_left_where_they_are_read():
    """It would save 0.2 s. By the default costs rows would be exchanged forever."""
    far = SetUp(exchange=1.0)
    assert sum(far.run(500, learn=False)[0]) > 450
    done, state = far.run(500)
    assert done[CONFIRM : CONFIRM + TRIAL] == [True] * TRIAL
    assert sum(done) <= 3 * TRIAL, "and two trials later"
    _, decided = CONTROL.decide(state)
    assert decided.costs.value.exchange == pytest.approx(0.9965), "beside the rows"
    assert "an exchange costs 996.5 ms, 17 x as calibrated" in decided.costs.because


def test_where_it_costs_a_tenth_rows_are_exchanged_after_a_trial():
    """It would save 25 ms, and is assumed to cost 64."""
    near = SetUp(busy=0.05, exchange=0.006)
    assert not any(near.run(500, learn=False)[0][:PROBE_EVERY])
    done, state = near.run(500)
    begun = done.index(True)
    assert begun <= PROBE_EVERY
    assert sum(done[begun:]) > 0.95 * len(done[begun:]), "the source is probed from time to time"
    assert CONTROL.decide(state)[1].costs.value.exchange < 0.01


def test_where_it_costs_what_is_assumed_nothing_changes():
    """Neither a slow start nor the first exchange, which takes seconds, lets the decision flicker."""
    plain, _ = SetUp(cold=0.0).run(300, learn=False)
    done, state = SetUp().run(300)
    assert done == plain
    assert sum(one != other for one, other in pairwise(done)) <= 1 + 2 * (300 // PROBE_EVERY)
    assert CONTROL.decide(state)[1].costs.value.exchange == pytest.approx(0.06, abs=0.01)


def test_where_a_job_costs_a_second_and_a_half_windows_return_to_the_driver():
    far = SetUp(job=1.5, windows=1.0)
    due = DueWindows(10, 1_000_000, 1, 2)
    assert place_windows(due, DEFAULT_COSTS).value.where == "spark"
    _, state = far.run(20)
    costs = CONTROL.decide(state)[1].costs.value
    assert place_windows(due, costs).value.where == "driver"
    assert costs.job == pytest.approx(1.5)


def test_what_was_learned_is_in_the_ledger():
    _, state = SetUp(exchange=1.0).run(20)
    restored = read_again(CONTROL, state)
    assert restored == state
    assert SetUp(exchange=1.0).run(100, restored)[0][:PROBE_EVERY] == [False] * PROBE_EVERY
    before = {name: value for name, value in CONTROL.snapshot(state).items() if name != "costs"}
    assert CONTROL.restore(before).costs == CONTROL.init().costs, "a checkpoint of an earlier version has none"


def test_a_stream_learns_what_its_windows_cost_and_continues_with_it(spark: SparkSession, tmp_path: Path):
    """After a start of some batches the costs are learned; the next start decides by them from its first batch on."""
    batches = late_rows(5, batches=8, rows=40)
    write_batches(tmp_path / "in", batches[:7])
    job = job_of(spark, Task(str(tmp_path), late=False), sp.Skyline("price MIN"), window="20 s", slide=None)
    assert not decision_of(finish(job)[0], "costs").figures
    assert len(last_batch(tmp_path).control["costs"]["factors"]["answers"]) >= ENOUGH
    write_batches(tmp_path / "in", batches[7:], first=7)
    decided = decision_of(finish(job)[0], "costs")
    assert "a window costs" in decided.because
    assert decided.value["window"] == pytest.approx(DEFAULT_COSTS.window * decided.figures["answers"])
