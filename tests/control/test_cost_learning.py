"""Costs that batches show: hand cases of each, and what may not move them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce

import pytest

from skypane.control.cost_learning import ENOUGH, FORGOTTEN, LEAST, MOST, RECENT, CostLearning, LearnedState
from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.measurements import BatchMeasurements, RunWork, TaskWork
from skypane.control.placement import DueRows, DueWindows, Place, place_windows
from skypane.types import CheckpointError

BASE = Costs(exchange=0.1, exchange_per_row=1e-6, job=0.2, window=0.001, window_per_row=1e-6, shard_per_row=1e-6)
LEARNING = CostLearning(BASE)
ROWS = 100_000


def lifted(seconds: float, *busy: float, exchanged: bool = False, rows: int = ROWS) -> BatchMeasurements:
    tasks = tuple(TaskWork(rows // len(busy), each, ()) for each in busy)
    return BatchMeasurements(tasks, 0.0, 1.0, exchanged, lift_seconds=seconds)


def answered(due: DueWindows | DueRows, where: Place, seconds: float, *busy: float) -> BatchMeasurements:
    runs = tuple(RunWork(1, each) for each in busy)
    return BatchMeasurements((), seconds, 1.0, exchanged=False, runs=runs, due=due, where=where)


def after(*batches: BatchMeasurements, policy: CostLearning = LEARNING) -> LearnedState:
    return reduce(policy.observe, batches, policy.init())


def costs(state: LearnedState, policy: CostLearning = LEARNING) -> Costs:
    return policy.decide(state)[1].value


READ = lifted(0.5, 0.4, 0.1)
"""A stage without an exchange: 0.1 s beyond its longest task."""
EXCHANGED = [READ, READ, *[lifted(1.45, 0.25, 0.25, exchanged=True)] * (ENOUGH + 1)]
"""Batches that show an exchange of 1.1 s, ten times as much as calibrated."""
DUE = DueWindows(10, ROWS, 1, 2)
"""Expected in 0.11 s."""


def test_before_any_batch_the_costs_are_those_calibrated():
    assert costs(LEARNING.init()) == BASE
    assert "as calibrated" in LEARNING.decide(LEARNING.init())[1].because


@pytest.mark.parametrize(("seconds", "exchange", "per_row"), [
    (1.45, 1.0, 1e-6),  # 1.45 s less the longest task of 0.25 s and the overhead of 0.1 s: 1.1 s, 0.1 of it for the rows
    (0.55, 0.1, 1e-6),  # as calibrated: 0.2 s
    (0.40, 0.025, 0.25e-6),  # a quarter of it
    (0.30, 0.01, 0.1e-6),  # nothing at all: within the limits
    (99.0, 10.0, 1e-6),
])  # fmt: skip
def test_an_exchange_costs_what_a_stage_with_one_takes_longer(seconds: float, exchange: float, per_row: float):
    moved = lifted(seconds, 0.25, 0.25, exchanged=True)
    found = costs(after(READ, READ, moved, *[moved] * ENOUGH))
    assert (found.exchange, found.exchange_per_row) == pytest.approx((exchange, per_row))
    assert (found.job, found.window) == (BASE.job, BASE.window), "shown by too few batches, or by none"


def test_an_uneven_exchange_costs_no_more_for_that():
    """The exchange takes 0.2 s, as calibrated; that one task had all the work is for the splitting policy to answer for."""
    uneven = lifted(0.8, 0.5, 0.0, exchanged=True)
    assert costs(after(READ, READ, uneven, *[uneven] * ENOUGH)).exchange == pytest.approx(BASE.exchange)


def test_an_exchange_of_a_batch_unlike_those_without_one_shows_nothing():
    moved = lifted(9.0, 0.25, 0.25, exchanged=True, rows=3 * ROWS)
    assert costs(after(READ, READ, *[moved] * 9)) == BASE
    assert costs(after(*[moved] * 9)) == BASE


@pytest.mark.parametrize("busy", [(0.3, 0.5), (0.5, 0.5, 0.0)])
def test_a_job_costs_what_it_takes_beyond_its_longest_task(busy: tuple[float, ...]):
    far = answered(DUE, "spark", 1.5, *busy)
    assert costs(after(*[far] * ENOUGH)).job == pytest.approx(1.0)


def test_rows_that_are_sent_to_shards_are_not_part_of_the_job():
    rows = DueRows(200_000, 300_000, 2)
    dear, cheap = (costs(after(*[answered(rows, "spark", 1.0 + more, 1.0, 0.9)] * ENOUGH)) for more in (0.9, 0.35))
    assert (dear.job, dear.shard_per_row) == pytest.approx((0.4, 1e-6))
    assert (cheap.job, cheap.shard_per_row) == pytest.approx((0.1, 0.5e-6))


def test_a_job_costs_no_more_than_the_pane_level_has_beyond_its_tasks():
    assert costs(after(*[lifted(0.45, 0.4)] * ENOUGH)).job == pytest.approx(0.05)
    assert costs(after(*[lifted(0.9, 0.4)] * ENOUGH)).job == BASE.job, "reading rows may have taken the time"


def test_windows_cost_what_the_driver_took_for_them():
    found = costs(after(*[answered(DUE, "driver", 9.0, 0.22)] * ENOUGH))
    assert (found.window, found.window_per_row) == pytest.approx((0.002, 2e-6))
    assert found.compared_per_row == pytest.approx(2 * BASE.compared_per_row)
    assert (found.divided_per_row, found.threads) == (BASE.divided_per_row, BASE.threads), "nothing shows them"


def in_threads(seconds: float, *cpu: float, due: DueWindows = DUE) -> BatchMeasurements:
    """Return a batch whose threads were busy all the time, and have worked for `cpu` seconds of it."""
    return replace(answered(due, "threads", seconds), runs=tuple(RunWork(5, seconds, each) for each in cpu))


def test_threads_cost_what_windows_take_beyond_their_work():
    """Their work is ten windows one at a time, 10 ms, and half of the merges each, 50 ms."""
    found = costs(after(*[in_threads(0.16, 0.055, 0.055)] * ENOUGH))
    assert found.threads == pytest.approx(0.1)


def test_windows_that_cost_more_than_calibrated_do_not_count_as_a_cost_of_threads():
    """Three times as much work as expected, which the threads share: half of it each."""
    found = costs(after(*[in_threads(0.01 + 0.32 / 2 + 0.02, 0.165, 0.165)] * ENOUGH))
    assert found.threads == pytest.approx(0.02)
    assert found.window == BASE.window, "nothing shows what they would cost the driver"


def test_threads_that_wait_for_each_other_cost_what_they_do_not_share():
    """Python code that holds the interpreter lock: 0.4 s of work take 0.42 s, as if there was one thread."""
    found = costs(after(*[in_threads(0.42, 0.2, 0.2)] * ENOUGH))
    assert found.threads == pytest.approx(0.42 - (0.01 + 0.39 / 2))
    due = replace(DUE, row_count=400_000, threads=True)
    assert [place_windows(due, known).value.where for known in (BASE, found)] == ["threads", "spark"]


def test_threads_cost_what_a_front_takes_beyond_the_work_of_its_shards():
    """A row is taken in each of two threads, and compared in one: 10 ms and 300 ms."""
    due = DueRows(100_000, 150_000, 2, threads=2)
    work = 100_000 * (BASE.front_per_row + 200_000 * BASE.front_per_pair / 2)
    found = costs(after(*[answered(due, "threads", work + 0.04, work, work)] * ENOUGH))
    assert found.shard_threads == pytest.approx(0.04)
    assert found.job == BASE.job, "no job has run"


def test_what_was_learned_in_a_place_is_forgotten_when_windows_are_elsewhere_for_long():
    here, elsewhere = answered(DUE, "driver", 9.0, 1.1), answered(DUE, "threads", 0.16, 0.6, 0.6)
    state = after(*[here] * ENOUGH, *[elsewhere] * (FORGOTTEN - 1))
    assert costs(state).window == pytest.approx(0.01)
    assert costs(LEARNING.observe(state, elsewhere)).window == BASE.window


def test_windows_cost_the_driver_no_more_than_all_workers_together():
    dear = [answered(DUE, "driver", 9.0, 1.1)] * ENOUGH
    workers = [answered(DUE, "threads", 9.0, 0.11, 0.11)] * ENOUGH
    assert costs(after(*dear)).window == pytest.approx(0.01)
    assert costs(after(*dear, *workers)).window == pytest.approx(0.002)
    assert costs(after(*workers)).window == BASE.window, "a worker starts without the merges of the last batch"


def test_a_front_that_takes_long_shows_what_its_rows_cost():
    """Expected in 0.1 ms and in 0.6 s: files take longer than the first."""
    few, many = DueRows(1_000, 0, 2), DueRows(100_000, 150_000, 2)
    assert costs(after(*[answered(few, "driver", 0.03)] * 5)) == BASE
    expected = 100_000 * (200_000 * BASE.front_per_pair + BASE.front_per_row)
    found = costs(after(*[answered(many, "driver", expected / 2)] * 5))
    assert found.front_per_row == pytest.approx(BASE.front_per_row / 2)
    assert found.front_per_pair == pytest.approx(BASE.front_per_pair / 2)


def test_slow_batches_at_the_start_move_nothing_for_long():
    """The first batch of a driver is not a sample, the first with an exchange neither, and of the others one may be slow."""
    first = replace(READ, interval=None, lift_seconds=60.0)
    slow, moved = lifted(3.0, 0.4, 0.1), lifted(0.55, 0.25, 0.25, exchanged=True)
    cold, colder = replace(moved, lift_seconds=5.0), replace(moved, lift_seconds=30.0)
    state = after(first, slow, READ, READ, colder, cold, cold, *[moved] * 3)
    assert costs(state).exchange == pytest.approx(BASE.exchange)


def test_a_batch_without_rows_and_without_windows_changes_nothing():
    state = after(*EXCHANGED, answered(DUE, "driver", 1.0, 0.2))
    idle = BatchMeasurements((), 0.001, 1.0, exchanged=False, runs=(RunWork(0, 0.001),), due=DueWindows(0, 0, 1, 2))
    no_rows = replace(idle, tasks=(TaskWork(0, 0.01, ()),), lift_seconds=0.1)
    assert LEARNING.observe(LEARNING.observe(state, idle), no_rows) == state


def test_costs_set_to_nothing_or_to_too_much_stay_so():
    """So tests and benches say where windows are answered."""
    free = CostLearning(Costs(exchange=0, exchange_per_row=0, job=0))
    never = CostLearning(replace(BASE, exchange=1e9, job=1e9))
    batches = [*EXCHANGED, *[answered(DUE, "spark", 1.5, 0.5)] * ENOUGH]
    found = costs(after(*batches, policy=free), free)
    assert (found.exchange, found.exchange_per_row, found.job) == (0, 0, 0)
    found = costs(after(*batches, policy=never), never)
    assert (found.exchange, found.job) == pytest.approx((1e8, 1e8))


def test_a_state_is_bounded_and_comes_back_from_json():
    state = after(*EXCHANGED * 20)
    assert len(state.stages) == len(state.factors["exchange"]) == RECENT
    assert all(LEAST <= factor <= MOST for factor in state.factors["exchange"])
    assert LEARNING.restore(json.loads(json.dumps(LEARNING.snapshot(state)))) == state
    with pytest.raises(CheckpointError, match="factors"):
        LEARNING.restore(LEARNING.snapshot(state) | {"factors": [1]})


def test_costs_that_were_calibrated_again_restart_learning():
    saved = LEARNING.snapshot(after(*[answered(DUE, "driver", 9.0, 0.22)] * ENOUGH))
    other = CostLearning(DEFAULT_COSTS)
    assert other.restore(saved) == other.init()


def test_a_decision_names_the_learned_costs():
    _, decision = LEARNING.decide(after(*EXCHANGED))
    assert decision.because == "an exchange costs 1 s, 10 x as calibrated"
    assert decision.figures == {"exchange": pytest.approx(10.0)}
