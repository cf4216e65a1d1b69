"""A late stream passed through a progress policy without its rows: dropped rows, and when each window is final.

Policies see only counts per pane, so a year of a stream runs in seconds. The order of steps is that of the engine: a
batch is admitted as a whole; rows of panes closed before it are dropped; after it the new punctuation closes panes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from skypane.progress.kslack import tuple_grain
from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.progress_policy import ProgressPolicy
from skypane.types import BoolArray, FloatArray, IntArray, Micros
from skypane.windows import Windows

_NEVER = np.iinfo(np.int64).max
_NOT_YET = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class LateStream:
    """Event time and arrival time of each tuple (microseconds), in order of arrival."""

    event: IntArray
    arrival: IntArray

    @classmethod
    def of(cls, event: IntArray, arrival: IntArray) -> Self:
        """Put tuples into order of arrival; those that arrive at the same time stay in their order."""
        order = np.argsort(arrival, kind="stable")
        return cls(event[order], arrival[order])


@dataclass(frozen=True, eq=False)
class Batches:
    """A stream cut into micro-batches, one for each interval of arrival time in which something came."""

    stream: LateStream
    windows: Windows
    #: For each batch, the end of its interval in microseconds, at which it is admitted without delay.
    clock: IntArray
    arrivals: Sequence[PaneArrivals]
    #: For each tuple, its batch.
    step: IntArray

    @classmethod
    def of(cls, stream: LateStream, windows: Windows, every: Micros) -> Self:
        """Cut `stream` at the multiples of `every`."""
        numbers, first, step = np.unique(stream.arrival // every, return_index=True, return_inverse=True)
        parts = np.split(stream.event, first[1:])
        arrivals = [PaneArrivals.of_times(part, windows) for part in parts]
        return cls(stream, windows, (numbers + 1) * every, arrivals, step)


@dataclass(frozen=True, eq=False)
class Trace:
    """What a policy said after each step: one step is a batch, or a tuple at tuple grain."""

    #: For each tuple of the stream, the step in which it arrived.
    step: IntArray
    #: For each step: its time on the clock of arrivals, the punctuation after it, and the rows so far.
    clock: IntArray
    punctuation: IntArray
    seen: IntArray
    dropped: IntArray

    def drop_ratio(self) -> FloatArray:
        """Return the share of rows dropped so far, after each step."""
        return self.dropped / self.seen

    def drop_ratio_after(self, rows: int) -> float:
        """Return the share dropped of the rows that came after the first `rows`, at the grain of steps."""
        start = int(np.searchsorted(self.seen, rows))
        return float((self.dropped[-1] - self.dropped[start]) / (self.seen[-1] - self.seen[start]))

    def worst_drop_ratio(self, after: int) -> float:
        """Return the largest share dropped so far, at any step once `after` rows had come."""
        return float(self.drop_ratio()[self.seen >= after].max())


def run(policy: ProgressPolicy, batches: Batches) -> Trace:
    """Take all batches through `policy`; rows that are held do not count as seen."""
    steps = np.array(list(_steps(policy, batches.arrivals)), np.int64).reshape(-1, 3)
    return Trace(batches.step, batches.clock, steps[:, 0], steps[:, 1], steps[:, 2])


def _steps(policy: ProgressPolicy, arrivals: Sequence[PaneArrivals]) -> Iterator[tuple[Micros, int, int]]:
    state = policy.init()
    for batch in arrivals:
        state = policy.decide(state, batch)[0]
        yield _NOT_YET if state.punctuation is None else state.punctuation, state.seen, state.dropped


def run_tuple_grain(stream: LateStream, windows: Windows) -> Trace:
    """Take the stream tuple by tuple through the paper's K-slack; dropped is what comes after its pane was closed."""
    punctuation = np.fromiter(tuple_grain(stream.event.tolist()), np.int64, len(stream.event))
    pane_end = windows.pane_end(windows.panes_at(stream.event))
    late = np.concatenate([[False], pane_end[1:] <= punctuation[:-1]])
    step = np.arange(len(stream.event))
    return Trace(step, stream.arrival, punctuation, step + 1, np.cumsum(late))


@dataclass(frozen=True, eq=False)
class WindowTimes:
    """When each window that was emitted became final, equal-length arrays in window order (microseconds)."""

    end: IntArray
    #: Paper 1, definition 3: from the arrival of the window's first tuple to its result.
    latency: IntArray
    #: From the window's end to its result: event time and arrival time use one clock here.
    past_end: IntArray

    def before(self, end: Micros) -> WindowTimes:
        """Return the windows that end at `end` or sooner."""
        return self._only(self.end <= end)

    def _only(self, mask: BoolArray) -> WindowTimes:
        return WindowTimes(self.end[mask], self.latency[mask], self.past_end[mask])


def window_times(stream: LateStream, windows: Windows, trace: Trace) -> WindowTimes:
    """Return the times of all windows that `trace` closes; a window whose tuples were all dropped does not exist."""
    first_pane, arrived = _first_arrivals(stream, windows, trace)
    first_window = windows.windows_of(first_pane).start
    last_window = windows.windows_of(first_pane + len(arrived) - 1).stop
    number = np.arange(first_window, last_window)
    end = windows.offset + number * windows.slide + windows.length
    first = _first_of_windows(arrived, number * windows.panes_per_slide - first_pane, windows.panes_per_window)
    step = np.searchsorted(trace.punctuation, end, side="left")
    emitted = (step < len(trace.clock)) & (first < _NEVER)
    final = trace.clock[step[emitted]]
    return WindowTimes(end[emitted], final - first[emitted], final - end[emitted])


def _first_arrivals(stream: LateStream, windows: Windows, trace: Trace) -> tuple[int, IntArray]:
    """Return the first pane, and for each pane from it on when its first admitted tuple came (_NEVER: none did)."""
    panes = windows.panes_at(stream.event)
    present, first_tuple = np.unique(panes, return_index=True)
    pane_end = windows.pane_end(present)
    before = np.concatenate([[_NOT_YET], trace.punctuation])[trace.step[first_tuple]]
    arrived = np.full(int(present[-1] - present[0]) + 1, _NEVER)
    arrived[present - present[0]] = np.where(pane_end > before, stream.arrival[first_tuple], _NEVER)
    return int(present[0]), arrived


def _first_of_windows(arrived: IntArray, start: IntArray, length: int) -> IntArray:
    """Return the smallest of each window's panes; panes outside the array hold nothing."""
    first = np.full(len(start), _NEVER)
    for offset in range(length):
        pane = start + offset
        inside = (pane >= 0) & (pane < len(arrived))
        first[inside] = np.minimum(first[inside], arrived[pane[inside]])
    return first
