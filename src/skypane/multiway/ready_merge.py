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

from skypane.types import BadInputError, BoolArray, ConfigError, IntArray, Micros

_MOST_RUNS = 32
_NEVER = np.iinfo(np.int64).min
_GONE = np.iinfo(np.int64).max


class Ready(Enum):
    """When a tuple of time t, of input i, is ready; newest[j] is the time of input j's last tuple.

    IN_ORDER      (t, i) <= (newest[j], j) for all j: the output is the same, tuple by tuple, whatever interleaves how
    DEFINITION_1  t <= newest[j] for all j, as paper 2 has it: the same but for the order of tuples of one time
    LAST_HELD     as the paper's T-Gate: t <= newest[j] for all j, and the tuple is no input's last
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
        by_input = _by_input(inputs, self.count)
        newest = _newest(state.newest, times[by_input], inputs[by_input], by_input)
        came = _sorted(times, inputs, np.arange(len(times)), rows, by_input)
        newest, runs, ready = self._released(newest, (*state.runs, came))
        return MergeState(newest, runs), rows.slice(0, 0) if ready is None else ready

    def leave(self, state: MergeState, inputs: Sequence[int]) -> tuple[MergeState, pa.Table | None]:
        """Wait for these inputs no longer; return the state, and the rows that are ready now, None if nothing waits.

        What they have sent is merged as ever. An input that has left may not send again; it joins under another number.
        """
        newest = state.newest.copy()
        newest[list(inputs)] = _GONE
        newest, runs, ready = self._released(newest, state.runs)
        return MergeState(newest, runs), ready

    def join(self, state: MergeState, inputs: int) -> tuple[ReadyMerge, MergeState]:
        """Return the merge of so many inputs more, and its state; they are waited for from now on."""
        newest = np.concatenate([state.newest, np.full(inputs, _NEVER)])
        return replace(self, count=self.count + inputs), replace(state, newest=newest)

    def _released(self, newest: IntArray, runs: Sequence[Run]) -> tuple[IntArray, tuple[Run, ...], pa.Table | None]:
        """Return what goes on waiting, and the rows that are ready; None if no run has tuples as old as that."""
        bound = newest.min()
        ends = [int(np.searchsorted(run.times, bound, "right")) for run in runs]
        due = [run.of(slice(end)) for run, end in zip(runs, ends, strict=True) if end]
        rest = [run.of(slice(end, None)) for run, end in zip(runs, ends, strict=True) if end < len(run.times)]
        if not due:
            return newest, _few(rest, self.count), None
        merged = due[0] if len(due) == 1 else _merged(due, self.count)
        ready = self._ready(newest, merged.times, merged.inputs)
        if not ready.all():
            rest = [merged.of(~ready), *rest]
            merged = merged.of(ready)
        return newest, _few(rest, self.count), merged.rows.take(pa.array(merged.order))

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
            ready &= ~(mine & (times == newest[inputs]))
        return ready


def _by_input(inputs: IntArray, count: int) -> IntArray:
    """Return the order by input; tuples of one stay in theirs."""
    # NumPy sorts 16-bit integers by radix, five times as fast as 64-bit ones.
    return np.argsort(inputs.astype(np.uint16) if count <= 1 << 16 else inputs, kind="stable")


def _sorted(times: IntArray, inputs: IntArray, order: IntArray, rows: pa.Table, by_input: IntArray) -> Run:
    """Return tuples as a run; `by_input` puts them in the order of inputs."""
    place = by_input[np.argsort(times[by_input], kind="stable")]
    return Run(times[place], inputs[place], order[place], rows)


def _merged(runs: Sequence[Run], count: int) -> Run:
    """Return runs as one; of equal times and inputs, those of earlier runs come first."""
    begins = np.cumsum([0, *(run.rows.num_rows for run in runs)])
    times, inputs = (np.concatenate(column) for column in list(zip(*runs, strict=True))[:2])
    order = np.concatenate([run.order + begin for run, begin in zip(runs, begins, strict=False)])
    together = pa.concat_tables([run.rows for run in runs])
    return _sorted(times, inputs, order, together, _by_input(inputs, count))


def _few(runs: Sequence[Run], count: int) -> tuple[Run, ...]:
    """Return runs as they are, or, of many, with the last ones as one, which lets go of rows that do not wait any more.

    As many are joined as are not twice as long as those after them, so that a tuple is in few joins however long it waits.
    """
    if len(runs) <= _MOST_RUNS:
        return tuple(runs)
    first, total = len(runs) - 1, len(runs[-1].times)
    while first and len(runs[first - 1].times) <= 2 * total:
        first -= 1
        total += len(runs[first].times)
    one = _merged(runs[first:], count)
    joined = Run(one.times, one.inputs, np.arange(total), one.rows.take(pa.array(one.order)))
    return (*runs[:first], joined)


def _newest(newest: IntArray, sent: IntArray, owners: IntArray, rows: IntArray) -> IntArray:
    """Return how far each input has come with tuples that lie input by input."""
    if not len(sent):
        return newest
    first = np.append(True, owners[1:] != owners[:-1])
    before = np.where(first, newest[owners], np.roll(sent, 1))
    backwards = np.flatnonzero(sent < before)
    if len(backwards):
        at = backwards[0]
        raise BadInputError(_backwards(int(owners[at]), int(rows[at]), int(sent[at]), int(before[at])))
    last = np.flatnonzero(np.append(first[1:], True))
    newest = newest.copy()
    newest[owners[last]] = sent[last]
    return newest


def _backwards(source: int, row: int, time: Micros, before: Micros) -> str:
    if before == _GONE:
        return f"input {source} has left, and sends row {row} of time {time}: let it join again under a new number"
    return f"input {source} goes backwards: row {row} is of time {time}, after one of time {before}"
