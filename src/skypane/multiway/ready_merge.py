"""The S-Merge of many inputs by columns: tuples in, in batches; those that are ready out, in one order (paper 2, section 2).

Each input's tuples come in the order of their times; inputs interleave as they like. A tuple is ready when none that belongs
before it can come any more.

    input 0   1   4 5           newest 5
    input 1     3     6         newest 6     the least is 5: 1 3 4 5 are ready, 6 waits
    input 2   2         7       newest 7

A push sorts what waits and what came: laid out input by input, it is a row of runs, which a stable sort by time finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import pyarrow as pa

from skypane.types import BadInputError, BoolArray, ConfigError, IntArray, Micros

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


@dataclass(frozen=True)
class MergeState:
    """What waits, and how far each input has come; `newest` is a time, or the least integer before the first tuple.

    Tuples wait in the order of (time, input, sequence).
    """

    newest: IntArray
    times: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    inputs: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: pa.Table | None = None

    @property
    def waiting(self) -> int:
        """How many tuples wait: those after the slowest input's newest."""
        return len(self.times)


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
        together = rows if state.rows is None else pa.concat_tables([state.rows, rows])
        times = np.concatenate([state.times, times])
        inputs = np.concatenate([state.inputs, inputs])
        # NumPy sorts 16-bit integers by radix, five times as fast as 64-bit ones.
        by_input = np.argsort(inputs.astype(np.uint16) if self.count <= 1 << 16 else inputs, kind="stable")
        sent, owners = times[by_input], inputs[by_input]
        newest = _newest(state.newest, sent, owners, by_input - state.waiting)
        by_time = np.argsort(sent, kind="stable")
        return self._released(newest, together, sent[by_time], owners[by_time], by_input[by_time])

    def leave(self, state: MergeState, inputs: Sequence[int]) -> tuple[MergeState, pa.Table | None]:
        """Wait for these inputs no longer; return the state, and the rows that are ready now, None if nothing waits.

        What they have sent is merged as ever. An input that has left may not send again; it joins under another number.
        """
        newest = state.newest.copy()
        newest[list(inputs)] = _GONE
        if state.rows is None:
            return replace(state, newest=newest), None
        return self._released(newest, state.rows, state.times, state.inputs, None)

    def join(self, state: MergeState, inputs: int) -> tuple[ReadyMerge, MergeState]:
        """Return the merge of so many inputs more, and its state; they are waited for from now on."""
        newest = np.concatenate([state.newest, np.full(inputs, _NEVER)])
        return replace(self, count=self.count + inputs), replace(state, newest=newest)

    def _released(
        self, newest: IntArray, rows: pa.Table, times: IntArray, inputs: IntArray, order: IntArray | None
    ) -> tuple[MergeState, pa.Table]:
        """Return the state and the rows that are ready; `order` puts the rows in the order of `times`, if they are not."""
        ready = self._ready(newest, times, inputs)
        sources = np.arange(len(times)) if order is None else order
        held = ~ready
        waits = rows.take(pa.array(sources[held]))
        return MergeState(newest, times[held], inputs[held], waits), rows.take(pa.array(sources[ready]))

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


def _newest(newest: IntArray, sent: IntArray, owners: IntArray, rows: IntArray) -> IntArray:
    """Return how far each input has come with tuples that lie input by input; those of rows below zero waited already."""
    if not len(sent):
        return newest
    first = np.append(True, owners[1:] != owners[:-1])
    came_first = first | (np.roll(rows, 1) < 0)
    before = np.where(came_first, newest[owners], np.roll(sent, 1))
    backwards = np.flatnonzero((sent < before) & (rows >= 0))
    if len(backwards):
        at = backwards[0]
        raise BadInputError(_backwards(int(owners[at]), int(rows[at]), int(sent[at]), int(before[at])))
    last = np.flatnonzero(np.append(first[1:], True))
    came = last[rows[last] >= 0]
    newest = newest.copy()
    newest[owners[came]] = sent[came]
    return newest


def _backwards(source: int, row: int, time: Micros, before: Micros) -> str:
    if before == _GONE:
        return f"input {source} has left, and sends row {row} of time {time}: let it join again under a new number"
    return f"input {source} goes backwards: row {row} is of time {time}, after one of time {before}"
