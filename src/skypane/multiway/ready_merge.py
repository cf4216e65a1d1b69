"""The S-Merge of many inputs by columns: it takes batches and returns ready tuples in one order (paper 2, section 2).

Each input's tuples arrive in time order; inputs may interleave in any way. A tuple is ready when no tuple that belongs
before it can still arrive.

    input 0   1   4 5           newest 5
    input 1     3     6         newest 6     the least is 5: 1 3 4 5 are ready, 6 waits
    input 2   2         7       newest 7

Waiting tuples are stored in sorted runs, one per push that left some. A push sorts the new tuples and merges the ready
ones with the ready prefixes of the runs. Tuples that keep waiting are not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skypane.kernels import merging
from skypane.types import BadInputError, BoolArray, ConfigError, IntArray, Micros

_MOST_RUNS = 32
_SMALL = 4
"""A run of less than 1/_SMALL of the pushed rows copies its rows at once."""
_NEVER = np.iinfo(np.int64).min
_GONE = np.iinfo(np.int64).max


class Ready(Enum):
    """When a tuple of input i with time t is ready; newest[j] is the time of input j's last tuple.

    IN_ORDER      (t, i) <= (newest[j], j) for all j: the output does not depend on the interleaving
    DEFINITION_1  t <= newest[j] for all j, as in paper 2: the same, except for the order of tuples of one time
    LAST_HELD     as the paper's T-Gate: neither the tuple nor one before it is the last of its input
    """

    IN_ORDER = "in order"
    DEFINITION_1 = "definition 1"
    LAST_HELD = "last held"


class SortedRun(NamedTuple):
    """Tuples in the order of (time, input, sequence): row order[i] of `rows` has time times[i] and input inputs[i]."""

    times: IntArray
    inputs: IntArray
    order: IntArray
    rows: pa.Table

    def of(self, part: slice | BoolArray) -> SortedRun:
        """Return a part of the run."""
        return SortedRun(self.times[part], self.inputs[part], self.order[part], self.rows)

    def compact(self) -> SortedRun:
        """Return the run with a copy of its rows, so that other rows can be freed."""
        return SortedRun(self.times, self.inputs, np.arange(len(self.times)), self.rows.take(pa.array(self.order)))


@dataclass(frozen=True)
class MergeState:
    """The waiting tuples, and `newest`, the time of each input's last tuple, or the least integer before the first."""

    newest: IntArray
    runs: tuple[SortedRun, ...] = ()

    @property
    def waiting(self) -> int:
        """Number of waiting tuples."""
        return sum(len(run.times) for run in self.runs)


@dataclass(frozen=True)
class ReadyMerge:
    """Merges `count` inputs; frozen, with immutable states."""

    count: int
    ready: Ready = Ready.IN_ORDER

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"count must be at least 1, got {self.count}")

    def init(self) -> MergeState:
        """Return the initial state; nothing is ready until each input has sent a tuple."""
        return MergeState(np.full(self.count, _NEVER))

    def push(self, state: MergeState, rows: pa.Table, times: IntArray, inputs: IntArray) -> tuple[MergeState, pa.Table]:
        """Add rows, each with a time and an input; return the state and the rows that are ready now, in order.

        Rows of one input must be in time order; otherwise raise BadInputError, which names the input and the row.
        """
        if len(inputs) and not 0 <= np.min(inputs) <= np.max(inputs) < self.count:
            raise BadInputError(f"inputs must be 0 to {self.count - 1}, got {np.min(inputs)} to {np.max(inputs)}")
        times, inputs = np.asarray(times, np.int64), np.asarray(inputs, np.int64)
        newest = _advanced(state.newest, times, inputs)
        late = times > newest.min()
        later, early = (np.flatnonzero(mask) for mask in (late, ~late))
        came = SortedRun(times[early], inputs[early], early, rows)
        runs, ready = self._released(newest, state.runs, came)
        if len(later):
            waits = _merged([SortedRun(times[later], inputs[later], later, rows)])
            runs = _few([*runs, waits.compact() if _SMALL * len(later) < len(times) else waits])
        return MergeState(newest, runs), rows.slice(0, 0) if ready is None else ready

    def leave(self, state: MergeState, inputs: Sequence[int]) -> tuple[MergeState, pa.Table | None]:
        """Stop waiting for these inputs; return the state, and the rows that are ready now or None.

        Tuples that they have sent are still merged. An input that has left may not send again; it can join with a new
        number.
        """
        return self.advance(state, inputs, _GONE)

    def advance(self, state: MergeState, inputs: Sequence[int], time: Micros) -> tuple[MergeState, pa.Table | None]:
        """Stop waiting for tuples of these inputs that are older than `time`; return the state as leave() does.

        Older tuples of them are an error from now on. An input that is at `time` or later already is unchanged.
        """
        newest, these = state.newest.copy(), list(inputs)
        newest[these] = np.maximum(newest[these], time)
        runs, ready = self._released(newest, state.runs)
        return MergeState(newest, runs), ready

    def join(self, state: MergeState, inputs: int) -> tuple[ReadyMerge, MergeState]:
        """Return the merge with `inputs` more inputs, for which it waits from now on, and its state."""
        newest = np.concatenate([state.newest, np.full(inputs, _NEVER)])
        return replace(self, count=self.count + inputs), replace(state, newest=newest)

    def _released(
        self, newest: IntArray, runs: Sequence[SortedRun], came: SortedRun | None = None
    ) -> tuple[tuple[SortedRun, ...], pa.Table | None]:
        """Return the runs that keep waiting, and the rows that are ready; None if no tuple is old enough.

        `came` has new tuples that are not newer than the slowest input's newest, in the order of each input.
        """
        ends = [int(np.searchsorted(run.times, newest.min(), "right")) for run in runs]
        rest = [run.of(slice(end, None)) for run, end in zip(runs, ends, strict=True) if end < len(run.times)]
        due = [run.of(slice(end)) for run, end in zip(runs, ends, strict=True) if end]
        if came is not None and len(came.times):
            due.append(came)
        if not due:
            return tuple(rest), None
        merged = _merged(due)
        ready = self._ready(newest, merged.times, merged.inputs)
        if not ready.all():
            rest = [merged.of(~ready).compact(), *rest]
            merged = merged.of(ready)
        return tuple(rest), merged.rows.take(pa.array(merged.order))

    def _ready(self, newest: IntArray, times: IntArray, inputs: IntArray) -> BoolArray:
        """Return which tuples are ready; they are in the order of (time, input, sequence)."""
        slowest = int(np.argmin(newest))  # the first of equal ones, which decides ties
        bound = newest[slowest]
        ready: BoolArray = times <= bound
        if self.ready is Ready.IN_ORDER:
            ready &= (times < bound) | (inputs <= slowest)
        elif self.ready is Ready.LAST_HELD:
            last = np.full(self.count, -1)
            last[inputs] = np.arange(len(inputs))  # the last of several assignments counts
            mine = last[inputs] == np.arange(len(inputs))
            held = mine & (times == newest[inputs])
            ready &= ~np.logical_or.accumulate(held)
        return ready


def _merged(parts: Sequence[SortedRun]) -> SortedRun:
    """Return parts, in which each input is in order, as one run; ties are in the order of the parts."""
    begins = np.cumsum([0, *(part.rows.num_rows for part in parts)])
    times, inputs = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:2])
    order = np.concatenate([part.order + begin for part, begin in zip(parts, begins, strict=False)])
    place = merging.sorted_order(times, inputs)
    rows = parts[0].rows if len(parts) == 1 else pa.concat_tables([part.rows for part in parts])
    return SortedRun(times[place], inputs[place], order[place], rows)


def _few(runs: Sequence[SortedRun]) -> tuple[SortedRun, ...]:
    """Return the runs; if there are too many, merge the last ones, which frees rows that no longer wait.

    A run is merged while it is at most twice as long as all runs after it, so that a tuple takes part in few merges.
    """
    if len(runs) <= _MOST_RUNS:
        return tuple(runs)
    first, total = len(runs) - 1, len(runs[-1].times)
    while first and len(runs[first - 1].times) <= 2 * total:
        first -= 1
        total += len(runs[first].times)
    return (*runs[:first], _merged(runs[first:]).compact())


def _advanced(newest: IntArray, times: IntArray, inputs: IntArray) -> IntArray:
    """Return the newest time of each input after these tuples; raise BadInputError if one goes backwards."""
    after = newest.copy()
    row = merging.advance(after, times, inputs)
    if row >= 0:
        raise BadInputError(_backwards(int(inputs[row]), row, int(times[row]), int(after[inputs[row]])))
    return after


def _backwards(source: int, row: int, time: Micros, before: Micros) -> str:
    if before == _GONE:
        return f"input {source} has left, but sends row {row} with time {time}; let it join with a new number"
    return f"input {source} goes backwards: row {row} has time {time} after time {before}"
