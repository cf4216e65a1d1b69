"""A policy whose numbers have changed between two starts goes on with the state that the old numbers have led to."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.progress.streams import batches, steps

from skypane.progress import AqKSlack, KSlack, ProgressPolicy, Watermark
from skypane.snapshots import through_json, to_json

PAIRS = [
    (Watermark("30 us"), Watermark("5 us")),
    (Watermark("5 us"), Watermark("30 us")),
    (KSlack(max_slack="40 us"), KSlack(max_slack="3 us")),
    (KSlack(max_slack="3 us"), KSlack(max_slack=None)),
    (AqKSlack(0.2, max_slack="40 us"), AqKSlack(0.01, max_slack="7 us")),
    (AqKSlack(0.01, max_slack="7 us"), AqKSlack(0.2, max_slack="40 us")),
    (AqKSlack(0.2, reserve=9), AqKSlack(0.2, reserve=1, max_slack=None)),
]


@pytest.mark.long
@pytest.mark.parametrize(("old", "new"), PAIRS, ids=str)
@given(before=batches(), after=batches())
def test_a_punctuation_is_never_taken_back(
    old: ProgressPolicy, new: ProgressPolicy, before: list[list[int]], after: list[list[int]]
):
    last = steps(old, before)[-1]
    state = new.restore(through_json(old.snapshot(last)))
    assert (state.punctuation, state.newest, state.seen) == (last.punctuation, last.newest, last.seen)
    given = [state.punctuation, *(one.punctuation for one in steps(new, after, begun=state))]
    assert None not in given
    assert given == sorted(given)


def test_a_changed_delay_holds_from_the_first_batch_on():
    last = steps(Watermark("30 us"), [[1_000], [1_100]])[-1]
    assert last.punctuation == 1_070
    state = Watermark("5 us").restore(to_json(last))
    assert state.slack == 5
    assert steps(Watermark("5 us"), [[1_101]], begun=state)[-1].punctuation == 1_096
    longer = Watermark("60 us").restore(to_json(last))
    assert steps(Watermark("60 us"), [[1_101]], begun=longer)[-1].punctuation == 1_070, "not taken back"


def test_a_smaller_bound_of_the_slack_holds_from_the_first_batch_on():
    last = steps(KSlack(max_slack="100 us"), [[1_000], [1_100, 940]])[-1]
    assert last.slack == 60
    state = KSlack(max_slack="7 us").restore(to_json(last))
    assert state.slack == 7
    assert steps(KSlack(max_slack="7 us"), [[1_101]], begun=state)[-1].punctuation == 1_094
