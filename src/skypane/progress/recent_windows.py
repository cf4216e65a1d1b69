"""Recent windows, each with the slack that would have saved it from being amended: for a budget of amended windows.

A window is amended by a row that comes after its answer. When a row comes for a window that ends `d` before the newest
time, each slack of at most d would have amended it; this is the window's distance, and of all its rows the longest
distance counts. So the windows that a slack would have amended are those with a distance of at least that slack, as
rows are dropped by their distances (progress/recent_lateness.py), but a window's distance grows with each later row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.recent_lateness import bins_of
from skypane.types import BoolArray, CheckpointError, FloatArray, IntArray, Micros
from skypane.windows import Windows

#: How many of the last windows are remembered in any case, and how many at most, besides those that overlap. A late row
#: of an earlier one counts it as a window again.
LEAST, MOST = 256, 4_096


class Clock(NamedTuple):
    """Times of a batch.

    newest        the newest time before the batch
    now           the newest time after it
    punctuation   up to which windows were answered before the batch
    patient       up to which K-slack would have answered them before the batch
    closed        rows of windows that end up to here teach nothing; None: all rows do
    forgotten     windows that end up to here need not be remembered after the batch
    """

    newest: Micros
    now: Micros
    punctuation: Micros
    patient: Micros
    closed: Micros | None
    forgotten: Micros


class WindowCounts(NamedTuple):
    """Counts of windows by which a batch changes the memories and the account.

    passed       windows with rows that the newest time has passed
    late         for each slack of EDGES, the windows that it would have amended, and that were not known as such
    amended      windows that the batch amends for the first time
    unavoidable  those of them that K-slack would have amended, too
    """

    passed: int
    late: FloatArray
    amended: int
    unavoidable: int


def _no_numbers() -> IntArray:
    return np.empty(0, np.int64)


def _no_flags() -> BoolArray:
    return np.empty(0, np.bool_)


@dataclass(frozen=True, eq=False)
class RecentWindows:
    """The recent windows that have rows: arrays of equal length, in ascending order of `number`.

    number    the number of the window
    bin       the index in EDGES of its distance, rounded down; -1: it has none
    amended   whether it has been amended
    total     windows amended since the start
    unavoidable   those of them that K-slack would have amended, too
    """

    number: IntArray = field(default_factory=_no_numbers)
    bin: IntArray = field(default_factory=_no_numbers)
    amended: BoolArray = field(default_factory=_no_flags)
    total: int = 0
    unavoidable: int = 0

    def after(self, arrivals: PaneArrivals, windows: Windows, clock: Clock) -> tuple[Self, WindowCounts]:
        """Return the windows after a batch, and its counts of them."""
        touched = _touched(arrivals, windows)
        number: IntArray = np.union1d(self.number, touched)
        known, at = np.searchsorted(number, self.number), np.searchsorted(number, touched)
        before, amended, seen = (
            np.full(len(number), -1),
            np.zeros(len(number), np.bool_),
            np.zeros(len(number), np.bool_),
        )
        before[known], amended[known], seen[known] = self.bin, self.amended, True
        end = windows.offset + number * windows.slide + windows.length
        came = np.zeros(len(number), np.bool_)
        came[at] = True
        first = came & ~amended & (end <= clock.punctuation)
        teaches = came if clock.closed is None else came & (end > clock.closed)
        after = np.where(teaches, np.maximum(before, bins_of(clock.newest - end)), before)
        passed = (end <= clock.now) & ((end > clock.newest) | (teaches & ~seen))
        counts = WindowCounts(
            int(passed.sum()), _raised(before, after), int(first.sum()), int((first & (end <= clock.patient)).sum())
        )
        kept = end > clock.forgotten
        kept[-LEAST:] = True
        kept[: -(MOST + windows.overlap)] = False
        total, unavoidable = self.total + counts.amended, self.unavoidable + counts.unavoidable
        return type(self)(number[kept], after[kept], (amended | first)[kept], total, unavoidable), counts

    def snapshot(self) -> dict[str, Any]:
        """Return the value as a JSON object, with runs of windows that are alike: [first, windows, bin, amended]."""
        alike = (np.diff(self.number) == 1) & (np.diff(self.bin) == 0) & (self.amended[1:] == self.amended[:-1])
        starts = np.flatnonzero(np.append(True, ~alike)[: len(self.number)])
        lengths = np.diff(np.append(starts, len(self.number)))
        columns = (self.number[starts], lengths, self.bin[starts], self.amended[starts].astype(np.int64))
        runs = [list(run) for run in zip(*(column.tolist() for column in columns), strict=True)]
        return {"runs": runs, "total": self.total, "unavoidable": self.unavoidable}

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the value that snapshot() wrote."""
        try:
            runs = np.array(snapshot["runs"], np.int64).reshape(-1, 4)
            totals = int(snapshot["total"]), int(snapshot["unavoidable"])
        except (KeyError, TypeError, ValueError) as cause:
            raise CheckpointError(f"recent windows cannot be read from {snapshot!r}") from cause
        first, length, bins, amended = runs.T
        within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        numbers = np.repeat(first, length) + within
        return cls(numbers, np.repeat(bins, length), np.repeat(amended, length).astype(np.bool_), *totals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecentWindows) and self.snapshot() == other.snapshot()

    __hash__ = None  # type: ignore[assignment]


def _touched(arrivals: PaneArrivals, windows: Windows) -> IntArray:
    """Return the windows that hold a pane of the batch, ascending."""
    pane = windows.panes_at(arrivals.pane_start)
    last = pane // windows.panes_per_slide
    first = -((windows.panes_per_window - 1 - pane) // windows.panes_per_slide)
    start = np.maximum(first, np.append(first[:1], last[:-1] + 1))  # each window once
    count = np.maximum(last + 1 - start, 0)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    numbers: IntArray = np.repeat(start, count) + within
    return numbers


def _raised(before: IntArray, after: IntArray) -> FloatArray:
    """Return for each slack of EDGES how many windows have reached its bin that had not reached it before."""
    size = int(after.max(initial=-1)) + 1
    steps = np.bincount(before + 1, minlength=size + 1)[: size + 1] - np.bincount(after + 1, minlength=size + 1)
    reached: FloatArray = np.cumsum(steps)[:size].astype(np.float64)
    return reached
