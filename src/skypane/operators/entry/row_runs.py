"""The order in which rows were read, as runs: consecutive rows, their counts by pane, and how disordered they are.

A batch is admitted as a whole, so its counts by pane do not show in which order its rows came. Its runs do: what one of them
holds came before what the next one holds, and within it no row was further behind the newest one before it than `delay`.

Rows have an order within a *unit*: a partition of the source, a file, or one of many inputs. Files were written one after the
other. Other units are read side by side, each from the begin of the batch to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from skypane.operators.entry.pane_counts import PaneCount, counts_of, merged_counts
from skypane.progress.pane_arrivals import SLOTS, UnitEnd, behind_before, parts_of
from skypane.types import IntArray, Micros

PARTITION_BITS: Final = 31
"""Bits of a unit's number that are the number of the source's partition in which it was read."""
_AT_ONCE: Final = 1_000
"""Milliseconds within which files are written at the same time."""
_MOST_UNITS: Final = 1_024
"""Units of a task, with more of which the order is not known."""
_MOST_RUNS: Final = 512
"""Runs into which a task divides its rows, if it has not read more units."""
_MOST_ENTRIES: Final = 4_096
"""Counts of panes in the runs that a task reports, or four for each pane: with more units or panes the runs are longer."""


@dataclass(frozen=True, slots=True)
class RowRun:
    """At least one row, one after the other.

    counts   rows by pane, panes in order
    delay    how far a row was behind the newest one before it in the run, at most (microseconds)
    """

    counts: tuple[PaneCount, ...]
    delay: Micros

    @property
    def rows(self) -> int:
        return sum(count.rows for count in self.counts)

    @property
    def newest(self) -> Micros:
        return max(count.newest for count in self.counts)

    @property
    def reached(self) -> Micros:
        """The newest time of the pane of the middle row: whatever less than half of the clocks show."""
        left = (self.rows + 1) // 2
        for count in self.counts:
            left -= count.rows
            if left <= 0:
                break
        return count.newest

    def then(self, later: RowRun) -> RowRun:
        """Return the rows of this run and of the one that was read after it."""
        behind = self.newest - min(count.oldest for count in later.counts)
        return RowRun(_merged((self, later)), max(self.delay, later.delay, behind))


@dataclass(frozen=True, slots=True)
class UnitRuns:
    """The rows of one unit that a task has read.

    unit   its number: a checksum of its name, if it has one, and the source's partition; if it is a file, -1 minus this number
    runs   its rows in order, as numbers: for each run its delay, the number of its panes, and the four numbers of each count
    """

    unit: int
    runs: tuple[int, ...]

    @classmethod
    def of(cls, unit: int, runs: Iterable[RowRun]) -> UnitRuns:
        numbers = list[int]()
        for run in runs:
            numbers += (run.delay, len(run.counts))
            for count in run.counts:
                numbers += (count.pane, count.rows, count.oldest, count.newest)
        return cls(unit, tuple(numbers))

    def unpacked(self) -> list[RowRun]:
        """Return the runs."""
        runs, at, numbers = list[RowRun](), 0, self.runs
        while at < len(numbers):
            delay, first, last = numbers[at], at + 2, at + 2 + 4 * numbers[at + 1]
            counts = (PaneCount(*numbers[place : place + 4]) for place in range(first, last, 4))
            runs.append(RowRun(tuple(counts), delay))
            at = last
        return runs


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """The rows of a batch in the order of reading.

    runs   the rows
    ends   how far each unit has come, of several that were read side by side
    """

    runs: tuple[RowRun, ...]
    ends: tuple[UnitEnd, ...] = ()


class RunRecorder:
    """Keeps the runs of the rows that one task reads, by unit."""

    def __init__(self) -> None:
        self._runs: dict[int, list[RowRun]] = {}
        #: whether there are rows whose units are not known, or are too many
        self._mixed = False

    def add(self, panes: IntArray, times: IntArray, units: IntArray | None) -> None:
        """Add rows in the order of reading: the pane, the time and the unit of each; None: this is not known."""
        self._mixed = self._mixed or (units is None and len(panes) > 0)
        if self._mixed or units is None or not len(units):
            return
        cuts = np.flatnonzero(np.diff(units)) + 1
        if len(cuts) > _MOST_UNITS:  # the unit changes from row to row
            order = np.argsort(units, kind="stable")
            panes, times, units = panes[order], times[order], units[order]
            cuts = np.flatnonzero(np.diff(units)) + 1
            self._mixed = len(cuts) > _MOST_UNITS
            if self._mixed:
                return
        most = max(1, min(SLOTS, _MOST_RUNS // (len(cuts) + 1)))
        for first, last in pairwise([0, *cuts.tolist(), len(units)]):
            known = self._runs.setdefault(int(units[first]), [])
            known += runs_of(panes[first:last], times[first:last], most)
            if len(known) >= 4 * SLOTS:
                known[:] = fewer(known, SLOTS)

    def units(self) -> tuple[UnitRuns, ...] | None:
        """Return the runs of all units; None if these are not known, or are too many.

        Those that were read side by side become one unit if they would be too much for a report.
        """
        if self._mixed:
            return None
        panes = {count.pane for known in self._runs.values() for run in known for count in run.counts}
        room, most, runs = max(_MOST_ENTRIES, 4 * len(panes)), SLOTS, self._runs
        if _entries(runs) > room:
            beside = [unit for unit in runs if unit >= 0]
            files = {unit: known for unit, known in runs.items() if unit < 0}
            runs = files | ({min(beside): side_by_side([runs[unit] for unit in beside])} if beside else {})
        while most and _entries(runs) > room:
            runs = {unit: fewer(known, most) for unit, known in runs.items()}
            most //= 2
        return tuple(UnitRuns.of(unit, known) for unit, known in runs.items()) if _entries(runs) <= room else None


def _entries(runs: Mapping[int, Sequence[RowRun]]) -> int:
    return sum(len(run.counts) for known in runs.values() for run in known)


def runs_of(panes: IntArray, times: IntArray, most: int = SLOTS) -> list[RowRun]:
    """Return at most `most` runs of about equal length of rows in the order of reading, given the pane and the time of each."""
    return [_run(panes[part], times[part]) for part in parts_of(len(times), most)]


def order_of(panes: IntArray, times: IntArray) -> ReadingOrder:
    """Return the order of rows that were read one after the other, given the pane and the time of each."""
    return ReadingOrder(tuple(runs_of(panes, times)))


def _run(panes: IntArray, times: IntArray) -> RowRun:
    return RowRun(tuple(counts_of(panes, times)), behind_before(times))


def fewer(runs: Sequence[RowRun], most: int) -> list[RowRun]:
    """Return at most `most` runs: neighbours are joined."""
    joined = list(runs)
    while len(joined) > most:
        joined = [reduce(RowRun.then, joined[at : at + 2]) for at in range(0, len(joined), 2)]
    return joined


class FilePlace(NamedTuple):
    """When a file was last changed (milliseconds), and its number among those of the batch, in the order of their times."""

    changed: int
    number: int


def in_order(units: Iterable[UnitRuns], files: Mapping[int, FilePlace]) -> ReadingOrder | None:
    """Return the order of a batch; None if it is not known.

    files   the place of the file with this checksum: files were written one after the other
    """
    written, others = dict[FilePlace, list[tuple[int, UnitRuns]]](), dict[int, list[RowRun]]()
    for one in units:
        if one.unit >= 0:
            others.setdefault(one.unit, []).extend(one.unpacked())
            continue
        name, partition = divmod(-1 - one.unit, 1 << PARTITION_BITS)
        if name not in files:
            return None
        written.setdefault(files[name], []).append((partition, one))
    beside = [runs for runs in (_sequence(written), *others.values()) if runs]
    ends = (UnitEnd(_end(runs), sum(run.rows for run in runs)) for runs in beside)
    return ReadingOrder(tuple(side_by_side(beside)), tuple(ends) if len(beside) > 1 else ())


def _sequence(files: Mapping[FilePlace, list[tuple[int, UnitRuns]]]) -> list[RowRun]:
    """Return the rows of files that were written one after the other.

    Whether those that were changed within a second were written so, or at the same time, nobody knows: they have the order
    in which they are less late.
    """
    sequence: list[RowRun] = []
    group: list[list[RowRun]] = []
    places = sorted(files)
    for number, place in enumerate(places, 1):
        parts = sorted(files[place], key=lambda part: part[0])
        group.append([run for _, part in parts for run in part.unpacked()])
        if number == len(places) or places[number].changed - place.changed >= _AT_ONCE:
            one_by_one = [run for runs in group for run in runs]
            better: list[RowRun] = min(one_by_one, side_by_side(group), key=_longest_delay)
            sequence += better
            group = []
    return sequence


def _longest_delay(runs: Sequence[RowRun]) -> Micros:
    return fewer(runs, 1)[0].delay if runs else 0


def side_by_side(units: Sequence[Sequence[RowRun]]) -> list[RowRun]:
    """Return the runs of a batch whose units were read side by side.

    A unit of fewer rows than SLOTS has no place in the batch: its rows are taken to have come when their time was reached.
    """
    if len(units) == 1:
        return fewer(units[0], SLOTS)
    long, short = list[tuple[int, Sequence[RowRun]]](), list[RowRun]()
    for runs in units:
        rows = sum(run.rows for run in runs)
        if rows >= SLOTS:
            long.append((rows, runs))
        else:
            short.append(reduce(RowRun.then, runs))
    if not long:
        return [_beside(short)] if short else []
    slots: list[list[RowRun]] = [[] for _ in range(min(SLOTS, *(len(runs) for _, runs in long)))]
    for total, runs in long:
        read = 0
        own: dict[int, RowRun] = {}
        for run in runs:
            read += run.rows
            slot = -(-read * len(slots) // total) - 1
            own[slot] = own[slot].then(run) if slot in own else run
        for slot, run in own.items():
            slots[slot].append(run)
    found = [_beside(slot) for slot in slots if slot]
    ends = [_end(runs) for _, runs in long]
    found[-1] = replace(found[-1], delay=max(found[-1].delay, max(ends) - min(ends)))
    reached = np.maximum.accumulate([run.newest for run in found])
    for run in short:
        place = min(int(np.searchsorted(reached, run.newest)), len(found) - 1)
        found[place] = _beside([found[place], run])
    return found


def _end(runs: Sequence[RowRun]) -> Micros:
    """Return how far a unit has come."""
    return max(run.reached for run in runs)


def _beside(runs: Sequence[RowRun]) -> RowRun:
    """Return the rows of runs that were read at the same time."""
    return RowRun(_merged(runs), max(run.delay for run in runs))


def _merged(runs: Iterable[RowRun]) -> tuple[PaneCount, ...]:
    return tuple(merged_counts(count for run in runs for count in run.counts))
