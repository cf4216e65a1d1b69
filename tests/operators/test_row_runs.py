"""The order of reading: runs of rows, units that are read one after the other or side by side."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.operators.entry.row_runs import (
    PARTITION_BITS,
    FilePlace,
    RowRun,
    RunRecorder,
    UnitRuns,
    fewer,
    in_order,
    runs_of,
    side_by_side,
)
from skypane.progress.pane_arrivals import SLOTS

PANE = 10
TIMES = st.lists(st.integers(0, 300), min_size=1, max_size=80)


def runs(times):
    times = np.array(times, np.int64)
    return runs_of(times // PANE, times)


def recorded(*parts):
    """The units of a task that has read these parts: the number of a unit, and times."""
    recorder = RunRecorder()
    for unit, part in parts:
        times = np.array(part, np.int64)
        recorder.add(times // PANE, times, np.full(len(times), unit))
    return recorder.units()


def ordered(units, files=None):
    """The order of a batch, which is known."""
    order = in_order(units, files or {})
    assert order is not None
    return order


def delay(times):
    """How far a row is behind the newest one before it, at most, row by row."""
    newest, longest = times[0], 0
    for time in times:
        longest, newest = max(longest, newest - time), max(newest, time)
    return longest


def file(checksum, partition=0):
    return -1 - (checksum << PARTITION_BITS | partition)


def longest(order):
    """The longest delay of rows in this order, joined to one run."""
    return fewer(order.runs, 1)[0].delay


@given(TIMES)
def test_a_run_has_the_longest_delay_of_its_rows_however_many_there_are(times):
    found = runs(times)
    assert len(found) <= SLOTS
    assert sum(run.rows for run in found) == len(times)
    for most in (SLOTS, 3, 1):
        joined = fewer(found, most)
        assert len(joined) <= most
    assert joined[0].delay == delay(times)
    assert [(count.pane, count.rows) for count in joined[0].counts] == sorted(
        {time // PANE: sum(other // PANE == time // PANE for other in times) for time in times}.items()
    )


@given(TIMES, st.integers(0, 5))
def test_a_unit_survives_its_report(times, unit):
    (found,) = recorded((unit, times))
    assert found.unit == unit
    assert found.unpacked() == runs(times)


@given(TIMES, st.lists(st.integers(0, 80), max_size=5))
def test_how_a_task_buffers_its_rows_changes_no_delay(times, cuts):
    edges = [0, *sorted(min(cut, len(times)) for cut in cuts), len(times)]
    parts = [(0, times[first:last]) for first, last in pairwise(edges) if last > first]
    (found,) = recorded(*parts)
    assert longest(ordered([found])) == delay(times)


def test_a_task_reports_many_units_that_it_read_side_by_side_as_one():
    times = np.random.default_rng(1).integers(0, 300, 160)
    (found,) = recorded(*((unit, times) for unit in range(40)))
    assert sum(run.rows for run in found.unpacked()) == 40 * 160
    assert longest(ordered([found])) >= delay(times)


def test_a_task_reports_fewer_runs_of_many_files():
    times = np.random.default_rng(1).integers(0, 300, 160)
    found = recorded(*((file(name), times) for name in range(40)))
    assert [len(unit.unpacked()) for unit in found] == [4] * 40
    assert [longest(ordered([unit], places(name))) for name, unit in enumerate(found)] == [delay(times)] * 40


def test_the_order_of_too_many_files_with_rows_of_many_panes_is_not_known():
    assert recorded(*((file(name), range(name, 3_000 + name, 10)) for name in range(20))) is None


@pytest.mark.parametrize("units", [3, 3_000])
def test_units_that_alternate_row_by_row_keep_their_order(units: int):
    """As where a column of the rows themselves is called input: the order of a few is known, that of thousands is not."""
    recorder, rows = RunRecorder(), 6_000
    times = np.arange(rows) // units * units  # rows of the same time, one of each unit
    recorder.add(times // PANE, times, np.arange(rows) % units)
    found = recorder.units()
    assert (found is None) == (units > 1_024)
    assert found is None or (len(found), longest(ordered(found))) == (units, 0)


def test_rows_whose_units_are_not_known_have_no_runs():
    recorder = RunRecorder()
    assert recorder.units() == ()
    recorder.add(np.zeros(3, np.int64), np.arange(3), None)
    assert recorder.units() is None


def places(*checksums, apart=60_000):
    """The places of files that were written in this order."""
    return {checksum: FilePlace(number * apart, number) for number, checksum in enumerate(checksums)}


def test_files_were_written_one_after_the_other():
    first, second = range(100), range(100, 200)
    units = recorded((file(7), second), (file(3), first))
    assert longest(ordered(units, places(3, 7))) == 0
    assert longest(ordered(units, places(7, 3))) == 199  # the newer one was written first
    assert in_order(units, places(3)) is None  # nobody knows when the other one was written


def test_files_that_were_changed_at_once_have_the_order_in_which_they_are_less_late():
    copied = recorded((file(3), range(100)), (file(7), range(100, 200)))
    assert longest(ordered(copied, places(3, 7, apart=10))) == 0
    made_by_two_tasks = recorded((file(3), range(0, 200, 2)), (file(7), range(1, 200, 2)))
    assert longest(ordered(made_by_two_tasks, places(3, 7, apart=10))) < 2 * PANE
    assert longest(ordered(made_by_two_tasks, places(3, 7))) == 197


def test_the_parts_of_a_file_follow_each_other():
    units = [*recorded((file(3, 5), range(100, 200))), *recorded((file(3, 2), range(100)))]
    assert longest(ordered(units, places(3))) == 0


def test_rows_of_a_unit_that_several_tasks_have_read_follow_each_other():
    order = ordered([*recorded((4, range(100))), *recorded((4, range(100, 200)))])
    assert longest(order) == 0
    assert order.ends == ()


def test_partitions_that_are_read_side_by_side_are_as_late_as_one_is_behind_the_other():
    """Worked by hand: over the same 160 rows one comes to 159, and the other, with as many rows, to 79."""
    order = ordered(recorded((0, range(160)), (1, [time // 2 for time in range(160)])))
    assert len(order.runs) == SLOTS
    assert [run.rows for run in order.runs] == [20] * SLOTS
    assert sorted(end.newest for end in order.ends) == [79, 159]
    assert order.runs[-1].delay == 80


def test_partitions_of_other_lengths_are_read_from_the_begin_of_the_batch_to_its_end():
    order = ordered(recorded((0, range(1_600)), (1, range(0, 1_600, 10))))
    assert all(run.rows == 110 for run in order.runs)
    assert max(run.delay for run in order.runs) < PANE


def test_a_few_rows_of_a_source_have_no_place_in_the_batch():
    order = ordered(recorded((0, range(160)), (1, [35]), (2, [500])))
    rows = [run.rows for run in order.runs]
    assert rows == [10, 10, 10, 11, *[10] * 11, 11]  # beside those of their time, or at the end
    assert max(run.delay for run in order.runs) == 0


def test_a_clock_that_is_ahead_in_one_partition_makes_no_lag():
    ahead = [time + (10_000 if time % 4 == 0 else 0) for time in range(160)]
    order = ordered(recorded((0, ahead), (1, range(160))))
    assert max(end.newest for end in order.ends) - min(end.newest for end in order.ends) < 2 * PANE


@pytest.mark.parametrize("units", [[], [[RowRun(runs([5])[0].counts, 0)]]])
def test_a_batch_of_no_or_one_row(units):
    assert [run.rows for run in side_by_side(units)] == [1] * len(units)


def test_numbers_of_a_unit_are_plain():
    (run,) = runs([25])
    assert UnitRuns.of(9, [run]).runs == (0, 1, 2, 1, 25, 25)
