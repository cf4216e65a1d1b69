"""The S-Merge of many inputs by columns: tuples in, in batches; those that are ready out, in one order (paper 2, section 2).

Each input's tuples come in the order of their times; inputs interleave as they like. A tuple is ready when none that belongs
before it can come any more.

    input 0   1   4 5           newest 5
    input 1     3     6         newest 6     the least is 5: 1 3 4 5 are ready, 6 waits
    input 2   2         7       newest 7

What waits lies in sorted runs, one for each push that left some. A push sorts what came, and merges what is ready of it with the
ready beginnings of the runs; what goes on waiting is not touched, however much it is.
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
"""A run of less than such a part of the rows that came gets rows of its own at once."""
_NEVER = np.iinfo(np.int64).min
_GONE = np.iinfo(np.int64).max


class Ready(Enum):
    """When a tuple of time t, of input i, is ready; newest[j] is the time of input j's last tuple.

    IN_ORDER      (t, i) <= (newest[j], j) for all j: the output is the same, tuple by tuple, whatever interleaves how
    DEFINITION_1  t <= newest[j] for all j, as paper 2 has it: the same but for the order of tuples of one time
    LAST_HELD     as the paper's T-Gate: neither the tuple nor one that stands before it is an input's last
    """

    IN_ORDER = "in order"
    DEFINITION_1 = "definition 1"
    LAST_HELD = "last held"


class Run(NamedTuple):
    """Tuples in the order of (time, input, sequence): row order[i] of `rows` is of time times[i] and input inputs[i]."""

    times: IntArray
    inputs: IntArray
    order: IntArray
    rows: pa.Table

    def of(self, part: slice | BoolArray) -> Run:
        """Return a part of it."""
        return Run(self.times[part], self.inputs[part], self.order[part], self.rows)

    def compact(self) -> Run:
        """Return it with rows of its own, so that those that it does not need can go."""
        return Run(self.times, self.inputs, np.arange(len(self.times)), self.rows.take(pa.array(self.order)))


@dataclass(frozen=True)
class MergeState:
    """What waits, and how far each input has come; `newest` is a time, or the least integer before the first tuple."""

    newest: IntArray
    runs: tuple[Run, ...] = ()

    @property
    def waiting(self) -> int:
        """How many tuples wait: those after the slowest input's newest."""
        return sum(len(run.times) for run in self.runs)


@dataclass(frozen=True)
class ReadyMerge:
    """Merges `count` inputs; frozen, its states are values."""

    count: int
    ready: Ready = Ready.IN_ORDER

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"need at least one input, got {self.count}")

    def init(self) -> MergeState:
        """Return the state before the first tuple: until each input has spoken, nothing is ready."""
        return MergeState(np.full(self.count, _NEVER))

    def push(self, state: MergeState, rows: pa.Table, times: IntArray, inputs: IntArray) -> tuple[MergeState, pa.Table]:
        """Take in rows, each of a time and an input; return the state, and the rows that are ready now, in order.

        Rows of one input must come in the order of their times: BadInputError, naming input and row, where one does not.
        """
        if len(inputs) and not 0 <= np.min(inputs) <= np.max(inputs) < self.count:
            raise BadInputError(
                f"inputs are numbered from 0 to {self.count - 1}, got {np.min(inputs)} to {np.max(inputs)}"
            )
        times, inputs = np.asarray(times, np.int64), np.asarray(inputs, np.int64)
        newest = _advanced(state.newest, times, inputs)
        late = times > newest.min()
        later, early = (np.flatnonzero(mask) for mask in (late, ~late))
        came = Run(times[early], inputs[early], early, rows)
        runs, ready = self._released(newest, state.runs, came)
        if len(later):
            waits = _merged([Run(times[later], inputs[later], later, rows)])
            runs = _few([*runs, waits.compact() if _SMALL * len(later) < len(times) else waits])
        return MergeState(newest, runs), rows.slice(0, 0) if ready is None else ready

    def leave(self, state: MergeState, inputs: Sequence[int]) -> tuple[MergeState, pa.Table | None]:
        """Wait for these inputs no longer; return the state, and the rows that are ready now, None if nothing waits.

        What they have sent is merged as ever. An input that has left may not send again; it joins under another number.
        """
        newest = state.newest.copy()
        newest[list(inputs)] = _GONE
        runs, ready = self._released(newest, state.runs)
        return MergeState(newest, runs), ready

    def join(self, state: MergeState, inputs: int) -> tuple[ReadyMerge, MergeState]:
        """Return the merge of so many inputs more, and its state; they are waited for from now on."""
        newest = np.concatenate([state.newest, np.full(inputs, _NEVER)])
        return replace(self, count=self.count + inputs), replace(state, newest=newest)

    def _released(
        self, newest: IntArray, runs: Sequence[Run], came: Run | None = None
    ) -> tuple[tuple[Run, ...], pa.Table | None]:
        """Return the runs that go on waiting, and the rows that are ready; None if nothing is as old as that.

        `came` are tuples as old as the slowest input's newest, in the order of each input.
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
        """Return which tuples are ready; they lie in the order of (time, input, sequence)."""
        slowest = int(np.argmin(newest))  # the first of them, which ties are decided by
        bound = newest[slowest]
        ready: BoolArray = times <= bound
        if self.ready is Ready.IN_ORDER:
            ready &= (times < bound) | (inputs <= slowest)
        elif self.ready is Ready.LAST_HELD:
            last = np.full(self.count, -1)
            last[inputs] = np.arange(len(inputs))  # of several, the last one stays
            mine = last[inputs] == np.arange(len(inputs))
            held = mine & (times == newest[inputs])
            ready &= ~np.logical_or.accumulate(held)
        return ready


def _merged(parts: Sequence[Run]) -> Run:
    """Return parts, whose tuples lie in the order of each input, as one run; those of earlier parts come first."""
    begins = np.cumsum([0, *(part.rows.num_rows for part in parts)])
    times, inputs = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:2])
    order = np.concatenate([part.order + begin for part, begin in zip(parts, begins, strict=False)])
    place = merging.sorted_order(times, inputs)
    rows = parts[0].rows if len(parts) == 1 else pa.concat_tables([part.rows for part in parts])
    return Run(times[place], inputs[place], order[place], rows)


def _few(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return runs as they are, or, of many, with the last ones as one, which lets go of rows that do not wait any more.

    As many are joined as are not twice as long as those after them, so that a tuple is in few joins however long it waits.
    """
    if len(runs) <= _MOST_RUNS:
        return tuple(runs)
    first, total = len(runs) - 1, len(runs[-1].times)
    while first and len(runs[first - 1].times) <= 2 * total:
        first -= 1
        total += len(runs[first].times)
    return (*runs[:first], _merged(runs[first:]).compact())


def _advanced(newest: IntArray, times: IntArray, inputs: IntArray) -> IntArray:
    """Return how far each input has come by then; BadInputError where one goes backwards."""
    after = newest.copy()
    row = merging.advance(after, times, inputs)
    if row >= 0:
        raise BadInputError(_backwards(int(inputs[row]), row, int(times[row]), int(after[inputs[row]])))
    return after


def _backwards(source: int, row: int, time: Micros, before: Micros) -> str:
    if before == _GONE:
        return f"input {source} has left, and sends row {row} of time {time}: let it join again under a new number"
    return f"input {source} goes backwards: row {row} is of time {time}, after one of time {before}"
