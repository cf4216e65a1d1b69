from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from skypane.progress import PaneArrivals
from skypane.progress.pauses import Pauses
from skypane.windows import Windows

WINDOWS = Windows(10, 10)
IN_ORDER = st.lists(st.integers(0, 60), min_size=1, max_size=40).map(
    lambda steps: [sum(steps[: i + 1]) for i in range(len(steps))]
)


def taken(batches: list[list[int]], most: int) -> Pauses:
    pauses, newest, seen = Pauses(), None, 0
    for times in batches:
        pauses = pauses.after(newest, seen, PaneArrivals.of_times(times, WINDOWS), most)
        newest, seen = max(times) if newest is None else max(newest, *times), seen + len(times)
    return pauses


def longest(times: list[int], rows: int) -> int:
    """The definition: from a row to the start of the next one's pane, where that is another pane, after `rows` rows."""
    gaps = [times[at] // 10 * 10 - times[at - 1] for at in range(max(rows, 1), len(times))]
    return max([0, *gaps])


@given(IN_ORDER, st.integers(1, 50), st.lists(st.integers(0, 40), max_size=5))
@example([0, 5, 30, 90], 2, [])
def test_the_longest_pause_after_so_many_rows_for_any_cut(times: list[int], most: int, cuts: list[int]):
    at = [0, *sorted(min(cut, len(times)) for cut in cuts), len(times)]
    batches = [times[begin:end] for begin, end in pairwise(at) if begin < end]
    pauses = taken(batches, most)
    assert len(pauses.records) <= most
    for rows in range(most + 1):
        assert pauses.longest(rows) == longest(times, rows)
    assert pauses.longest(most + 1) == 0, "more are not distinguished"


def test_the_rows_of_a_batch_are_sorted_first_and_what_is_late_makes_no_pause():
    assert taken([[5, 100, 52]], most=9).records == ((2, 48),)
    assert taken([[100], [10], [105]], most=9) == Pauses()


@given(IN_ORDER)
def test_a_snapshot_goes_through_json(times: list[int]):
    pauses = taken([times], most=32)
    assert Pauses.restored(json.loads(json.dumps(pauses.snapshot()))) == pauses
