"""The windows that each slack would have amended, against a definition over all rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.progress.streams import batches

from skypane.progress import PaneArrivals
from skypane.progress.recent_lateness import EDGES
from skypane.progress.recent_windows import LEAST, MOST, Clock, RecentWindows
from skypane.windows import Windows

EVER = -(10**15)
"""A time before every row."""
WINDOWS = st.sampled_from([Windows(10, 10), Windows(30, 10), Windows(25, 10, 3), Windows(7, 7, -2)])


@dataclass
class Naive:
    """Windows by number: the longest distance, None if no row has one; and those that were amended."""

    windows: Windows
    distance: dict[int, int | None] = field(default_factory=dict)
    amended: set[int] = field(default_factory=set)

    def take(self, times, newest, punctuation, closed=EVER):
        for time in times:
            for window in self.windows.windows_of(self.windows.pane_at(time)):
                end = self.windows.bounds(window)[1]
                known = self.distance.setdefault(window, None)
                if newest >= end > closed and newest - end > (-1 if known is None else known):
                    self.distance[window] = newest - end
                if end <= punctuation:
                    self.amended.add(window)

    def would_amend(self, slack):
        return sum(distance is not None and distance >= slack for distance in self.distance.values())


def clock(newest, now, punctuation, patient=EVER, closed=None, forgotten=EVER):
    return Clock(newest, now, punctuation, patient, closed, forgotten)


@given(WINDOWS, batches(), st.integers(0, 40), st.integers(0, 60))
def test_each_slack_amends_the_windows_of_the_definition(windows, stream, slack, unlearned):
    """The slack in force amends `total`; of the others, each batch adds those that were not known as amended by them."""
    recent, naive, late, passed, newest = RecentWindows(), Naive(windows), np.zeros(len(EDGES)), 0, 0
    for times in stream:
        now, closed = max(newest, *times), newest - unlearned
        moment = clock(newest, now, newest - slack, patient=newest - 2 * slack, closed=closed)
        recent, counts = recent.after(PaneArrivals.of_times(times, windows), windows, moment)
        naive.take(times, newest, newest - slack, closed)
        late[: len(counts.late)] += counts.late
        passed += counts.passed
        newest = now
        assert [int(number) for number in late[:30]] == [naive.would_amend(int(edge)) for edge in EDGES[:30]]
        assert recent.total == len(naive.amended)
        assert recent.unavoidable <= recent.total
    assert passed <= sum(windows.bounds(window)[1] <= newest for window in naive.distance)
    assert set(recent.number.tolist()) == set(naive.distance)


@given(WINDOWS, st.integers(0, 2**32 - 1), st.sampled_from([(LEAST, True), (MOST, False)]), st.floats(0, 1))
def test_the_definition_holds_for_more_windows_than_are_remembered(windows, seed, remembered, part):
    """If no row comes for a window that is no longer remembered; LEAST are, even if all may be forgotten."""
    rng, (bound, at_once) = np.random.default_rng(seed), remembered
    reach = (bound - 20) * windows.slide
    drawn = np.sort(rng.integers(0, 6_000 * windows.slide, 12_000))
    delay = np.where(rng.random(len(drawn)) < 0.05, rng.integers(0, reach, len(drawn)), rng.integers(0, 15, len(drawn)))
    event = drawn[np.argsort(drawn + delay, kind="stable")]
    recent, naive, late, newest, slack = RecentWindows(), Naive(windows), np.zeros(len(EDGES)), 0, int(part * reach)
    for batch in np.split(event, np.sort(rng.integers(0, len(event), 30))):
        times = batch.tolist()
        now = max([newest, *times])
        moment = clock(newest, now, newest - slack, forgotten=now if at_once else EVER)
        recent, counts = recent.after(PaneArrivals.of_times(times, windows), windows, moment)
        naive.take(times, newest, newest - slack)
        late[: len(counts.late)] += counts.late
        newest = now
        assert len(recent.number) <= MOST + windows.overlap
    assert len(naive.distance) > MOST
    assert recent.total == len(naive.amended)
    assert late.astype(np.int64).tolist() == [naive.would_amend(int(edge)) for edge in EDGES]


@given(WINDOWS, batches())
def test_windows_with_rows_are_counted_once_when_the_newest_time_passes_them(windows, stream):
    recent, seen, passed, newest = RecentWindows(), set(), 0, 0
    for times in stream:
        now = max(newest, *times)
        recent, counts = recent.after(PaneArrivals.of_times(times, windows), windows, clock(newest, now, EVER))
        seen |= {window for time in times for window in windows.windows_of(windows.pane_at(time))}
        passed, newest = passed + counts.passed, now
        assert passed == sum(windows.bounds(window)[1] <= newest for window in seen)


@given(WINDOWS, batches())
def test_a_snapshot_at_any_batch_gives_the_same_windows(windows, stream):
    recent, newest = RecentWindows(), 0
    for times in stream:
        recent = RecentWindows.restored(json.loads(json.dumps(recent.snapshot())))
        now = max(newest, *times)
        moment = clock(newest, now, newest - 5, newest - 20, newest - 20, newest - 50)
        after, counts = recent.after(PaneArrivals.of_times(times, windows), windows, moment)
        again = RecentWindows.restored(json.loads(json.dumps(after.snapshot())))
        assert again == after
        assert (again.number == after.number).all()
        assert counts.amended == after.total - recent.total
        recent, newest = after, now


def test_worked_by_hand():
    windows = Windows(10, 10)
    recent, counts = RecentWindows().after(PaneArrivals.of_times([1, 15, 24], windows), windows, clock(0, 24, EVER))
    assert (counts.passed, counts.amended, counts.late.tolist()) == (2, 0, []), "[0, 10) and [10, 20) are passed"
    # The newest time is 24: [0, 10) ends 14 before it, [10, 20) ends 4 before it; the second has been answered, too.
    recent, counts = recent.after(PaneArrivals.of_times([2, 19, 30], windows), windows, clock(24, 30, 20, patient=10))
    assert (counts.passed, counts.amended, counts.unavoidable) == (1, 2, 1)
    assert counts.late.tolist() == [2] * 5 + [1] * (len(counts.late) - 5), (
        "a slack of 4 amends both, one of 5 the first"
    )
    assert EDGES[len(counts.late) - 1] <= 14 < EDGES[len(counts.late)]
    # Later rows raise the distance of [10, 20) from 4 to 10; [0, 10) is 20 behind now. Both are amended already.
    recent, counts = recent.after(PaneArrivals.of_times([3, 12, 12], windows), windows, clock(30, 30, 20, patient=10))
    assert (counts.passed, counts.amended, recent.total, recent.unavoidable) == (0, 0, 2, 1)
    assert counts.late[:11].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    twenty = int(np.searchsorted(EDGES, 20, side="right")) - 1
    runs = [[0, 1, twenty, 1], [1, 1, 10, 1], [2, 2, -1, 0]]
    assert recent.snapshot() == {"runs": runs, "total": 2, "unavoidable": 1}


def test_the_number_of_windows_is_bounded_and_alike_ones_are_one_run():
    windows = Windows(10, 10)
    recent = RecentWindows()
    for start in range(0, 10 * MOST, 1_000):
        times = np.arange(start * 10, (start + 1_000) * 10, 10)
        recent, _ = recent.after(
            PaneArrivals.of_times(times, windows), windows, clock(start * 10, (start + 1_000) * 10, EVER)
        )
    assert len(recent.number) == MOST + 1
    assert len(recent.snapshot()["runs"]) == 1
