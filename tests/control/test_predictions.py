"""Predicted seconds against their definition: the rows one by one, and what is left of them pane by pane."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.costs import Costs
from skypane.control.predictions import (
    ExpectedBatch,
    SourceFigures,
    SourceSpread,
    SplittingOption,
    finished,
    left,
    predict,
)
from skypane.control.splitting import CHOICE, Routing, SplittingSample, UpcomingBatch

COSTS = Costs(exchange=0.06, exchange_per_row=1e-6, window=0.001)

panes = st.dictionaries(st.integers(-5, 40), st.integers(1, 300), min_size=1, max_size=6)
figures = st.builds(
    SourceFigures,
    read=st.floats(1, 3),
    row_seconds=st.floats(0, 1e-2),
    longest=st.floats(0.1, 1),
    partitions=st.floats(1, 16),
    merging=st.floats(0, 1e-2),
)


def routings(rows: dict[int, int], workers: int, sizes: tuple[int, ...]) -> dict[str, Routing]:
    """Return how the policies would route a batch after partitions of these sizes."""
    found = {}
    for policy in CHOICE:
        state = policy.observe(policy.init(), SplittingSample(None, sizes))
        found[policy.name] = policy.decide(state, UpcomingBatch(rows, workers, open_from=max(rows) + 1))[1].value
    return found


@given(panes, st.integers(1, 6), st.lists(st.integers(1, 200), max_size=5).map(tuple))
def test_options_are_what_becomes_of_the_rows_one_by_one(rows, workers, sizes):
    for name, routing in routings(rows, workers, sizes).items():
        option = SplittingOption.of(name, routing, rows)
        sent = itertools.count()
        owned = [
            (pane, routing.owner(pane, next(sent) if routing.everywhere else row))
            for pane, count in rows.items()
            for row in range(count)
        ]
        assert option.busiest == max(Counter(worker for _, worker in owned).values())
        partitions = Counter(pane for pane, _ in set(owned))
        assert option.partitions == tuple(partitions[pane] for pane in rows)


@given(panes, st.integers(1, 6), figures, st.floats(0, 1), st.lists(st.integers(1, 200), max_size=5).map(tuple))
def test_no_policy_is_faster_than_the_best_case(rows, workers, source, growth, sizes):
    """So policies are not needed where the best case does not pay."""
    options = tuple(SplittingOption.of(*one, rows) for one in routings(rows, workers, sizes).items())
    found = predict(source, ExpectedBatch(rows, workers, options), COSTS, growth)
    for seconds in found.routed.values():
        assert seconds.total >= found.best_case.total * (1 - 1e-12)
    assert found.seconds.total == min(seconds.total for seconds in found.routed.values())


@given(
    st.lists(st.floats(0, 9), min_size=1, max_size=12).map(tuple),
    st.lists(st.integers(1, 999), min_size=1, max_size=5).map(tuple),
    st.integers(1, 4),
    st.floats(0, 2),
    st.integers(1, 6),
    st.floats(0, 1),
)
def test_the_batch_that_was_measured_is_predicted_as_it_was(busy, pane_rows, partitions, merging, workers, growth):
    spread = SourceSpread(
        sum(pane_rows), busy, pane_rows, partitions * len(pane_rows), merging + COSTS.window * len(pane_rows), workers
    )
    source = SourceFigures.of(spread, COSTS, growth)
    found = predict(source, ExpectedBatch(dict(enumerate(pane_rows)), workers), COSTS, growth)
    assert found.as_read.lift == pytest.approx(finished(busy, workers), abs=1e-12)
    if min(pane_rows) >= partitions:
        assert found.as_read.merge == pytest.approx(merging, abs=1e-9)
    assert found.as_read.exchange == 0


def test_rows_that_are_left_by_hand():
    """Of 16 rows in one partition 4 are left at a growth of a half, of 4 x 4 rows 2 each; of a top-k one each."""
    assert left([16], [1], 0.5) == pytest.approx(4)
    assert left([16], [4], 0.5) == pytest.approx(8)
    assert left([16, 9], [4, 1], 0) == pytest.approx(5)
    assert left([16, 9], [4, 2], 1) == pytest.approx(25)


def test_tasks_begin_on_the_first_free_worker():
    assert finished((3.0, 1.0, 1.0, 2.0), 2) == 4.0
    assert finished((3.0,), 8) == 3.0
    assert finished((), 2) == 0.0


def test_rejected_rows_are_exchanged_too():
    """A batch of which every second row is late: its panes' rows take all of the seconds, and all rows are moved."""
    source = SourceFigures.of(SourceSpread(2_000, (1.0,), (1_000,), 1, 0.0, 2), COSTS, 0.5)
    found = predict(source, ExpectedBatch({7: 3_000}, 2), COSTS, 0.5)
    assert found.as_read.lift == pytest.approx(3.0)
    assert found.best_case.exchange == pytest.approx(COSTS.exchanging(6_000))
