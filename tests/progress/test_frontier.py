from __future__ import annotations

from itertools import pairwise
from math import ceil, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.progress.streams import counted

from skypane.progress import PaneArrivals
from skypane.progress.far_future import SUPPORT
from skypane.progress.frontier import FEW, STRETCH, Frontier
from skypane.snapshots import from_json, through_json, to_json
from skypane.windows import Windows

SECOND, HOUR = 1_000_000, 3_600_000_000
ROW = Windows(1, 1)  # a pane for each microsecond: nothing about the rows is lost

RANGES = (st.integers(0, 60), st.integers(0, 3_000), st.integers(50_000, 50_060))
BATCHES = [st.lists(times, min_size=1, max_size=80) for times in (*RANGES, st.one_of(RANGES))]
STREAMS = st.lists(st.one_of(BATCHES), min_size=1, max_size=12)


def reached(batches, *, restarted=False):
    """Return tmax after each batch of arrivals; the state may be restored before each."""
    newest, frontier, found = None, Frontier(), []
    for arrivals in batches:
        frontier = from_json(Frontier, through_json(to_json(frontier))) if restarted else frontier
        newest, frontier = frontier.after(newest, arrivals, SUPPORT)
        found.append(newest)
    return found


def played(stream, windows=ROW, *, restarted=False):
    """Return tmax after each batch of times."""
    return reached((PaneArrivals.of_times(times, windows) for times in stream), restarted=restarted)


class Definition:
    """The same on rows instead of panes."""

    def __init__(self):
        self.newest = self.spacing = self.base = None
        self.unit = 0
        self.group = []

    def after(self, times):
        self.group = sorted([*(self.group if len(times) < SUPPORT else []), *times])
        rows = len(self.group)
        complete = rows >= SUPPORT
        spacing = self.gaps() if complete or self.spacing is None else self.spacing
        self.base = min(times) if self.base is None else self.base
        for time in times:
            if time < max(times):
                self.unit = int(np.gcd(self.unit, time - self.base))
        most = inf if spacing is None else max(STRETCH * spacing, self.unit) or inf
        start = self.group[(rows + 1) // 2 - 1] if self.newest is None else self.newest
        self.newest = self.walked(start, most, self.group if complete else sorted(times))
        if rows >= SUPPORT / 2:
            needed = rows / 2 + SUPPORT / 4 if rows < SUPPORT else max(min(rows * 3 / 4, SUPPORT * 3 / 2), rows / 8)
            followed = self.group[rows - ceil(needed)]
            if followed > self.newest:
                self.newest = self.walked(followed, most, self.group)
        if complete:
            self.spacing, self.group = spacing, []
        return self.newest

    @staticmethod
    def walked(reach, most, times):
        for time in times:
            if time - reach > most:
                break
            reach = max(reach, time)
        return reach

    def gaps(self):
        rows = len(self.group)
        if rows < FEW:
            return None
        low, middle, high = rows // 8, (rows + 1) // 2 - 1, rows - rows // 8 - 1
        parts = self.group[low : middle + 1], self.group[middle : high + 1]
        return min(max((b - a for a, b in pairwise(part)), default=0) for part in parts)


@pytest.mark.long
@given(STREAMS)
def test_is_the_definition(stream):
    definition = Definition()
    assert played(stream) == [definition.after(times) for times in stream]


@given(STREAMS)
def test_a_snapshot_at_every_step_gives_the_same_run(stream):
    assert played(stream, restarted=True) == played(stream)


def test_worked_by_hand():
    # rows a second apart: the spacing is 1 s, and gaps of up to 8 s are crossed
    steady = [number * SECOND for number in range(SUPPORT)]
    last = steady[-1]
    assert played([steady, [last + 8 * SECOND]]) == [last, last + 8 * SECOND]
    assert played([steady, [last + 9 * SECOND]]) == [last, last]
    # 9 s ahead and a row between: both are reached, in whatever order they come
    assert played([steady, [last + 9 * SECOND, last + 4 * SECOND]])[-1] == last + 9 * SECOND
    # across any gap the stream is followed by 16 rows of 16, 20 of 24, 24 of 32
    ahead = [last + HOUR + number * SECOND for number in range(100)]
    for late, needed in ((0, 16), (4, 20)):
        assert played([steady, steady[: late + 1] + ahead[: needed - 1]])[-1] == last
        assert played([steady, steady[:late] + ahead[:needed]])[-1] == ahead[needed - 1]
    assert played([steady, ahead[:15]])[-1] == last
    assert played([steady, steady[:9] + ahead[:23]])[-1] == last
    assert played([steady, steady[:8] + ahead[:24]])[-1] == ahead[23]
    # the same if rows come one by one
    assert played([steady, *([time] for time in steady[:9] + ahead[:23])])[-1] == last
    assert played([steady, *([time] for time in steady[:8] + ahead[:24])])[-1] == ahead[23]
    # by 48 of 64 to 384, and by an eighth of more
    many = [number * SECOND // 100 for number in range(700)]
    for rows, needed in ((64, 48), (384, 48), (800, 100)):
        assert played([steady, many[: rows - needed + 1] + ahead[: needed - 1]])[-1] == last
        assert played([steady, many[: rows - needed] + ahead[:needed]])[-1] >= ahead[0]


def test_longer_panes_hardly_change_the_spacing():
    rng = np.random.default_rng(1)
    for length in (SECOND, 60 * SECOND, HOUR):
        times = np.sort(rng.integers(0, 4 * HOUR, 4_000))
        spacing = dict[Windows, float]()
        for windows in (ROW, Windows(length, length)):
            _, frontier = Frontier().after(None, PaneArrivals.of_times(times, windows), SUPPORT)
            assert frontier.spacing is not None
            spacing[windows] = frontier.spacing
        assert 0.5 < spacing[Windows(length, length)] / spacing[ROW] < 2


def test_until_a_few_rows_are_known_every_gap_is_short():
    assert played([[0], [HOUR], [3 * HOUR]]) == [0, HOUR, 3 * HOUR]
    assert played([[0] * FEW + [HOUR]])[-1] == HOUR  # nothing is known about gaps: all rows have one time
    assert played([[*range(FEW), HOUR]])[-1] == FEW - 1


def hour_of(rows):
    """Return a random generator, and so many times within an hour."""
    rng = np.random.default_rng(1)
    return rng, np.sort(rng.random(rows) * HOUR).astype(np.int64)


@pytest.mark.parametrize("share", [0.01, 0.05])
@pytest.mark.parametrize("batch", [33, 50, 1_000, 5_000])
@pytest.mark.parametrize("length", ["500 ms", "10 seconds", "10 minutes"])
def test_clocks_that_are_ahead_move_nothing(share, batch, length):
    rng, time = hour_of(50_000)
    ahead = rng.random(len(time)) < share
    shown = time + np.where(ahead, 2 * HOUR, 0)
    windows = Windows.of(length)
    found = played([shown[at : at + batch] for at in range(0, len(shown), batch)], windows)
    right = [time[: at + batch][~ahead[: at + batch]].max() for at in range(0, len(time), batch)]
    assert all(newest <= most for newest, most in zip(found, right, strict=True))
    # and the stream is hardly ever behind
    behind = np.array(right) - found
    assert np.median(behind) == 0
    assert behind.mean() < 0.05 * batch * HOUR / len(time)


def played_with_sources(times, sources, batch):
    parts = (slice(at, at + batch) for at in range(0, len(times), batch))
    return reached(counted(times[part], sources[part], Windows.of("10 minutes")) for part in parts)


@pytest.mark.parametrize("batch", [50, 200, 1_000, 5_000])
def test_three_clocks_of_ten_move_nothing_if_the_sources_are_known(batch):
    rng, time = hour_of(50_000)
    source = rng.integers(0, 10, len(time))
    shown = time + np.where(source < 3, 2 * HOUR, 0)
    assert max(played_with_sources(shown, source, batch)) <= HOUR


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_sources_that_pause_together_within_a_batch_are_followed_in_it(share):
    rng, time = hour_of(10_000)
    source = rng.integers(0, 10, len(time))
    time[int(len(time) * (1 - share)) :] += 8 * HOUR
    assert played_with_sources(time, source, len(time)) == [time.max()]


def test_a_batch_of_one_source_is_followed_wherever_its_clock_is():
    steady = np.arange(2 * SUPPORT) * SECOND  # two batches: one alone does not show in which unit times are given
    for rows, followed in ((15, False), (16, True)):
        times = np.concatenate([steady, steady[:rows] + HOUR])
        found = played_with_sources(times, np.repeat([0, 1], [2 * SUPPORT, rows]), SUPPORT)
        assert found[-1] == (times[-1] if followed else steady[-1])


@pytest.mark.parametrize("unit", [1_000, SECOND, 60 * SECOND])
@pytest.mark.parametrize("rate", [1, 100, 5_000])
def test_times_in_whole_units_are_followed(unit, rate):
    rng = np.random.default_rng(1)
    rows = 40_000
    time = np.sort(rng.random(rows) * rows / rate * SECOND).astype(np.int64) // unit * unit
    batches = [time[at : at + 500] for at in range(0, rows, 500)]
    found = played(batches, Windows.of("10 seconds"))
    assert found == [batch.max() for batch in batches]


@given(st.integers(1, 100), st.integers(1, 10**15))
def test_a_stream_that_pauses_is_followed_within_two_groups(cut, pause):
    before = [number * SECOND for number in range(100)]
    after = [before[-1] + pause + number * SECOND for number in range(2 * SUPPORT + cut)]
    times = before + after
    assert played([times[at : at + cut] for at in range(0, len(times), cut)])[-1] >= after[0]


def test_a_nightly_pause_does_not_make_an_hour_short():
    day = [number * SECOND for number in range(5_000)]
    night = [12 * HOUR + time for time in day]
    wrong = [*night[:100], night[99] + HOUR]
    batches = [day[at : at + 100] for at in range(0, 5_000, 100)]
    assert played([*batches, night[:100], night[100:200], wrong])[-1] == night[199]
