"""The division of windows among tasks: every window and key exactly once, and never longer than fixed runs, as predicted."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.costs import DEFAULT_COSTS
from skypane.control.measurements import BatchMeasurements, PieceWork
from skypane.control.placement import DueWindows, PlacementChoice
from skypane.control.window_costs import LearnedWindows, calibrated, learned
from skypane.control.window_division import (
    Division,
    Piece,
    WindowDivision,
    WindowsToDivide,
    bundled,
    chosen,
    fixed_division,
    longest,
    seconds_of,
)
from skypane.control.window_work import DueRuns, WindowCosts, WindowSize, Work
from skypane.snapshots import through_json

POLICY = WindowDivision()


Sizes: TypeAlias = tuple[WindowSize, ...]


@st.composite
def sizes_of(draw: st.DrawFn, most: int = 40) -> Sizes:
    """Windows of panes with any numbers of rows, which overlap or not."""
    slide, length = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    count = draw(st.integers(1, most))
    number = count * slide + length
    panes = draw(st.lists(st.integers(0, 5) | st.integers(0, 100_000), min_size=number, max_size=number))
    found = []
    for at in range(count):
        begin = at * slide
        new = panes[max(begin, begin - slide + length) if at else begin : begin + length]
        found.append(WindowSize(sum(panes[begin : begin + length]), sum(new)))
    return tuple(found)


SECONDS = st.floats(0, 1e-3)
COSTS = st.builds(
    WindowCosts,
    st.builds(Work, SECONDS, SECONDS, SECONDS, SECONDS, st.floats(0, 1e-9), SECONDS),
    st.floats(0, 1) | st.just(0.0),
)


def due_of(sizes: Sizes, workers: int, keys: int) -> DueWindows:
    return DueWindows(len(sizes), sum(size.added for size in sizes), 3, workers, keys)


def run_of(data: st.DataObject, sizes: Sizes) -> tuple[int, int]:
    """Draw a run of the windows: its begin, and its end."""
    begin = data.draw(st.integers(0, len(sizes) - 1))
    return begin, data.draw(st.integers(begin + 1, len(sizes)))


def naive_work(sizes: Sizes, begin: int, end: int) -> tuple[float, float, float]:
    """Rows merged, rows held and pairs of a run, by definition."""
    added = [sizes[begin].rows, *(size.added for size in sizes[begin + 1 : end])]
    held = [size.rows for size in sizes[begin:end]]
    pairs = sum(a * (h - a) + a**2 / 2 for a, h in zip(added, held, strict=True))
    return sum(added), sum(held), pairs


def assert_complete(division: Division, windows: int) -> None:
    """Every window is in one run, and each of its parts in one task."""
    found: dict[tuple[int, int], list[Piece]] = {}
    for piece in division.pieces:
        found.setdefault((piece.begin, piece.end), []).append(piece)
    for parts in found.values():
        assert sorted(piece.part for piece in parts) == list(range(parts[0].parts))
        assert len({piece.parts for piece in parts}) == 1
    assert sorted(at for begin, end in found for at in range(begin, end)) == list(range(windows))


@given(sizes_of(), st.data(), st.integers(1, 9))
def test_the_work_of_a_run_is_that_of_its_definition(sizes: Sizes, data: st.DataObject, parts: int):
    begin, end = run_of(data, sizes)
    added, held, pairs = naive_work(sizes, begin, end)
    work = DueRuns(sizes).work(begin, end, parts)
    expected = Work(1, end - begin, added / parts, held / parts, pairs / parts, added if parts > 1 else 0)
    assert work == pytest.approx(expected)


@given(sizes_of(), COSTS, st.integers(1, 5), st.data())
def test_a_run_costs_more_the_later_it_ends_and_the_earlier_it_begins(
    sizes: Sizes, costs: WindowCosts, parts: int, data: st.DataObject
):
    begin, end = run_of(data, sizes)
    runs = DueRuns(sizes)
    whole = seconds_of(Piece(begin, end, 0, parts), runs, costs)
    for shorter in ((begin + 1, end), (begin, end - 1)):
        if shorter[0] < shorter[1]:
            assert seconds_of(Piece(*shorter, 0, parts), runs, costs) <= whole * (1 + 1e-9)


@given(sizes_of(), COSTS, st.integers(1, 20), st.integers(0, 1), st.integers(1, 6), st.integers(1, 4))
def test_every_window_and_key_is_in_one_task_and_none_takes_longer_than_with_fixed_runs(
    sizes: Sizes, costs: WindowCosts, workers: int, keys: int, runs: int, parts: int
):
    fixed = fixed_division(sizes, min(runs, workers), parts if keys else 1)
    decision = chosen(DueRuns(sizes), costs, due_of(sizes, workers, keys), fixed)
    assert_complete(decision.value, len(sizes))
    assert len(decision.value.tasks) <= max(workers, len(fixed.tasks))
    assert all(piece.parts == 1 for piece in decision.value.pieces) or keys
    table = DueRuns(sizes)
    assert longest(decision.value, table, costs) <= longest(fixed, table, costs) * (1 + 1e-9)
    assert decision.figures["best"] <= decision.figures["fixed"] * (1 + 1e-9)
    assert chosen(table, costs, due_of(sizes, workers, keys), fixed) == decision


@given(sizes_of(7), COSTS, st.integers(1, 4), st.booleans())
def test_the_longest_piece_is_as_short_as_that_of_any_division(
    sizes: Sizes, costs: WindowCosts, workers: int, keys: bool
):
    """All cuts of few windows, each run in any number of parts, tried one by one."""
    table, fixed = DueRuns(sizes), Division.of_pieces([Piece(0, len(sizes))])
    decision = chosen(table, costs, due_of(sizes, workers, keys), fixed)
    best = min(longest(one, table, costs) for one in every_division(len(sizes), workers, keys=keys))
    assert decision.figures["best"] <= best * (1 + 1e-2) + 1e-12


@given(sizes_of(), COSTS, st.data())
def test_a_run_takes_no_longer_than_its_two_halves(sizes: Sizes, costs: WindowCosts, data: st.DataObject):
    """Also if they share no row; the search counts on it."""
    table, cut = DueRuns(sizes), data.draw(st.integers(0, len(sizes)))
    halves = [Piece(begin, end) for begin, end in ((0, cut), (cut, len(sizes))) if begin < end]
    apart = sum(seconds_of(half, table, costs) for half in halves)
    assert seconds_of(Piece(0, len(sizes)), table, costs) <= apart * (1 + 1e-9)


def every_division(windows: int, tasks: int, *, keys: bool) -> list[Division]:
    found = []
    for cuts in (cut for count in range(min(windows, tasks)) for cut in combinations(range(1, windows), count)):
        ranges = list(zip((0, *cuts), (*cuts, windows), strict=True))
        for parts in every_parts(len(ranges), tasks if keys else len(ranges)):
            pieces = [
                Piece(begin, end, part, of)
                for (begin, end), of in zip(ranges, parts, strict=True)
                for part in range(of)
            ]
            found.append(Division.of_pieces(pieces))
    return found


def every_parts(runs: int, tasks: int) -> list[tuple[int, ...]]:
    if runs == 0:
        return [()]
    return [(of, *rest) for of in range(1, tasks - runs + 2) for rest in every_parts(runs - 1, tasks - of)]


@given(sizes_of(), COSTS, st.integers(1, 6))
def test_bundles_are_within_a_piece_of_the_mean(sizes: Sizes, costs: WindowCosts, tasks: int):
    """The greedy rule: the longest task has at most the mean and one piece more."""
    table, pieces = DueRuns(sizes), [Piece(at, at + 1) for at in range(len(sizes))]
    division = bundled(pieces, table, costs, tasks)
    assert_complete(division, len(sizes))
    assert all(division.tasks)
    seconds = [seconds_of(piece, table, costs) for piece in pieces]
    assert longest(division, table, costs) <= (sum(seconds) / tasks + max(seconds)) * (1 + 1e-9)


def test_runs_of_a_burst_by_hand():
    """Four panes a window, slide one; the fifth of eight windows brings 900 rows, and four windows hold them.

    By rows to merge, both tasks have half of 3,628 + 8: windows 0 to 5 and 6, 7. But windows 4 to 7 share the merge of
    the burst: after a cut between 5 and 6 both tasks merge it, 904 + 903 rows; after one between 3 and 4 only one does.
    """
    panes = [1] * 7 + [900] + [1] * 3
    sizes = tuple(WindowSize(sum(panes[at : at + 4]), panes[at + 3] if at else sum(panes[:4])) for at in range(8))
    costs = WindowCosts(Work(0, 0, 1e-3, 0, 0, 0))
    table, fixed = DueRuns(sizes), fixed_division(sizes, 2)
    assert fixed == Division.of_pieces([Piece(0, 6), Piece(6, 8)])
    assert [round(seconds_of(piece, table, costs), 3) for piece in fixed.pieces] == [0.908, 0.904]
    best = chosen(table, costs, due_of(sizes, 2, 0), fixed)
    # 7 and 906 rows, which is not better by five hundredths: the runs stay as they are.
    assert best.value == fixed
    assert best.figures["best"] == pytest.approx(0.906)
    # With keys, the windows of the burst are divided: two tasks have half of it each.
    shared = chosen(table, costs, due_of(sizes, 2, 1), fixed)
    assert shared.value == Division.of_pieces([Piece(0, 8, 0, 2), Piece(0, 8, 1, 2)])
    assert shared.figures["best"] == pytest.approx(0.910 / 2)


def test_a_huge_window_gets_the_parts_and_small_ones_share_a_task():
    sizes = tuple(WindowSize(rows, rows) for rows in (10, 10, 600, 10, 10, 10))
    costs = WindowCosts(Work(0, 20e-3, 1e-3, 0, 0, 0))
    decision = chosen(DueRuns(sizes), costs, due_of(sizes, 4, 1), fixed_division(sizes, 4))
    # A third of the huge window takes 0.22 s; the five others, 0.15 s together, are a run on each side of it.
    assert (decision.figures["fixed"], decision.figures["best"]) == pytest.approx((0.62, 0.22))
    assert sorted(decision.value.tasks) == [
        (Piece(0, 2), Piece(3, 6)),
        *((Piece(2, 3, part, 3),) for part in range(3)),
    ]


def test_windows_without_overlap_go_to_the_task_with_the_least_work():
    """WIN_FB by hand: 6, 1, 1, 6, 1, 1, 6, 2 for three workers are 8 each."""
    rows = (6, 1, 1, 6, 1, 1, 6, 2)
    sizes = tuple(WindowSize(one * 100, one * 100) for one in rows)
    costs, table = WindowCosts(Work(0, 0, 1e-3, 0, 0, 0)), DueRuns(sizes)
    decision = chosen(table, costs, due_of(sizes, 3, 0), fixed_division(sizes, 3))
    assert decision.figures["best"] == pytest.approx(0.8)
    assert min(longest(one, table, costs) for one in every_division(8, 3, keys=False)) == pytest.approx(0.8)
    division = bundled([Piece(at, at + 1) for at in range(8)], table, costs, 3)
    assert_complete(division, 8)
    assert [sum(sum(rows[one.begin : one.end]) for one in task) for task in division.tasks] == [8, 8, 8]


def test_fixed_runs_until_a_run_has_been_measured():
    sizes = (WindowSize(1_000, 1_000), WindowSize(10, 10), WindowSize(10, 10))
    known = WindowsToDivide(sizes, due_of(sizes, 2, 1), PlacementChoice("spark", 2), DEFAULT_COSTS)
    _, decision = POLICY.decide(POLICY.init(), known)
    assert decision.value == fixed_division(sizes, 2)
    assert "no run has been measured" in decision.because


def measured(sizes: Sizes, division: Division, costs: WindowCosts) -> BatchMeasurements:
    """What a batch measures if work costs exactly this."""
    table = DueRuns(sizes)
    pieces = tuple(
        PieceWork(
            one.begin, one.end, one.part, table.work(one.begin, one.end, one.parts), seconds_of(one, table, costs)
        )
        for one in division.pieces
    )
    return BatchMeasurements((), 0.1, 1.0, exchanged=False, pieces=pieces)


@given(st.lists(sizes_of(12), min_size=4, max_size=8), st.integers(1, 4))
def test_the_costs_are_learned_as_far_as_runs_show_them(batches: list[Sizes], runs: int):
    truth = WindowCosts(Work(2e-3, 1e-3, 3e-7, 1e-7, 2e-11, 0))
    shown = (measured(sizes, fixed_division(sizes, runs), truth) for sizes in batches)
    state = reduce(POLICY.observe, shown, POLICY.init())
    costs = learned(state, calibrated(DEFAULT_COSTS, 3, compared_once=True))
    assert all(value >= 0 for value in costs.each)
    table = DueRuns(batches[-1])
    for piece in fixed_division(batches[-1], runs).pieces:
        assert seconds_of(piece, table, costs) == pytest.approx(seconds_of(piece, table, truth), rel=0.5)


def test_the_share_of_a_hot_key_is_learned_and_forgotten():
    sizes, truth = (WindowSize(10_000, 10_000),) * 3, WindowCosts(Work(0, 0, 1e-5, 0, 0, 0), 0.6)
    table = DueRuns(sizes)
    pieces = [Piece(0, 3, part, 4) for part in range(4)]
    busy = [0.7, 0.1, 0.1, 0.1]  # 0.6 + 0.4 / 4, and 0.4 / 4 each
    batch = BatchMeasurements((), 0.1, 1.0, exchanged=False, pieces=tuple(
        PieceWork(0, 3, piece.part, table.work(0, 3, 4), seconds) for piece, seconds in zip(pieces, busy, strict=True)
    ))  # fmt: skip
    state = reduce(POLICY.observe, [batch] * 12, POLICY.init())
    assert state.hot == pytest.approx(truth.hot, rel=1e-3)
    assert WindowCosts(truth.each, state.hot).share(4) == pytest.approx(0.7, rel=1e-3)
    whole = measured(sizes, fixed_division(sizes, 1), truth)
    assert reduce(POLICY.observe, [whole] * 100, state).hot < 0.3


@given(st.lists(sizes_of(12), min_size=1, max_size=6), COSTS, st.integers(1, 6), st.integers(0, 1))
def test_the_same_decisions_after_a_restart_at_every_batch(
    batches: list[Sizes], truth: WindowCosts, workers: int, keys: int
):
    state, restarted = POLICY.init(), POLICY.init()
    for sizes in batches:
        known = WindowsToDivide(
            sizes, due_of(sizes, workers, keys), PlacementChoice("spark", min(workers, len(sizes))), DEFAULT_COSTS
        )
        (state, decision), (restarted, again) = POLICY.decide(state, known), POLICY.decide(restarted, known)
        assert decision == again
        through_json(decision.to_json())
        batch = measured(sizes, decision.value, truth)
        state = POLICY.observe(state, batch)
        restarted = POLICY.restore(through_json(POLICY.snapshot(POLICY.observe(restarted, batch))))
        assert restarted == state


def test_the_first_batch_after_a_start_teaches_nothing():
    sizes = (WindowSize(1_000, 1_000),)
    batch = measured(sizes, fixed_division(sizes, 1), WindowCosts(Work(1, 1, 1, 1, 1, 1)))
    first = BatchMeasurements((), 0.1, None, exchanged=False, pieces=batch.pieces)
    assert POLICY.observe(POLICY.init(), first) == POLICY.init() == LearnedWindows()


@pytest.mark.parametrize(("windows", "workers"), [(700, 16), (5_000, 64)])
def test_many_windows_are_divided_as_well(windows: int, workers: int):
    """Beyond the windows that are bundled one by one."""
    sizes = tuple(WindowSize(100 + at * 7919 % 1000, 10 + at * 104729 % 300) for at in range(windows))
    costs = learned(POLICY.init(), calibrated(DEFAULT_COSTS, 30, compared_once=False))
    fixed = fixed_division(sizes, workers)
    decision = chosen(DueRuns(sizes), costs, due_of(sizes, workers, 1), fixed)
    assert_complete(decision.value, windows)
    assert decision.figures["best"] <= decision.figures["fixed"]
