"""The states of keys over a sliding window: running sums, from which panes are subtracted, and two stacks for the rest.

Sums are integers, including those of floating-point numbers (kernels/exact.py), so subtracting a pane is exact:

    push    adds a pane's sums to those of its keys
    evict   subtracts the sums of the oldest pane

A maximum has no inverse; its states are in a queue that maintains the merger of all panes in it (two stacks). With a
table of all keys per pane, a stack would hold panes x keys states. But a pane changes only its own keys, so:

    front   all keys, the merger of the older panes; for each pane, the states of its keys before it was merged
    back    all keys, the merger of the younger panes

    push    merges a pane's keys into the back
    evict   restores the earlier states of the oldest pane's keys
    flip    when the front is empty: merges the panes of the back into the front, youngest first, saving earlier states

A key of a pane costs an addition, a subtraction, two merges and two copies in total, however many windows hold the
pane. An answer costs a copy and a merge for each key in the window, which is one per row that it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skypane.kernels import keyed, sliding_states
from skypane.kernels.column_layout import frozen
from skypane.kernels.state_split import StateSplit, Tops, tops_in
from skypane.operators.aggregates.having import AnswerFilter
from skypane.operators.aggregates.key_numbering import KeyNumbers
from skypane.operators.aggregates.state_layout import StateLayout
from skypane.types import IntArray


@dataclass
class _Pane:
    """A pane in the queue: its keys' numbers and states, and, once it is in the front, the states there before it."""

    index: int
    partial: pa.Table
    tops: Tops
    ids: IntArray
    sums: Any
    stacked: Any
    before: Any = None


class SlidingStates:
    """A queue of partials of one layout with integer states only; window_query.TwoStacks accepts any partials."""

    def __init__(self, by: Sequence[str], layout: StateLayout, choice: AnswerFilter) -> None:
        self._choice = choice
        self._layout = layout
        self._keys = KeyNumbers(pa.schema([layout.rows.field(name) for name in by]))
        #: the oldest pane last
        self._older: list[_Pane] = []
        #: the youngest pane last
        self._younger: list[_Pane] = []
        self._begin([])

    def push(self, pane: int, partial: pa.Table) -> None:
        """Add a pane that is younger than all others."""
        states = self._layout.states(partial)
        tops = tops_in(states, self._layout.plan)
        if not self._split.holds(tops):
            self._begin([*reversed(self._older), *self._younger], tops)
        self._push(pane, partial, states, tops)

    def evict_before(self, pane: int) -> None:
        """Remove every pane older than `pane`."""
        while self._older and self._older[-1].index < pane:
            oldest = self._older.pop()
            sliding_states.take_away(self._totals, oldest.ids, oldest.sums)
            keyed.put_states(self._front, oldest.ids, oldest.before)
        if self._younger and self._younger[0].index < pane:
            self._flip(pane)

    def answer(self) -> pa.Table:
        """Return the answer of all panes, one row per key that has rows in them."""
        count, split = self._keys.count, self._split
        states = sliding_states.window_states(
            self._totals, self._front, self._back, count, split.width, split.sums, split.stacked
        )
        ids = keyed.rows_with(states)
        if len(ids) == count:
            return self._choice.of(self._layout.lowered(self._keys.keys, states))
        taken = keyed.take_states(states, ids)
        return self._choice.of(self._layout.lowered(self._keys.keys.take(pa.array(ids)), taken))

    def _begin(self, panes: Sequence[_Pane], *more: Tops) -> None:
        """Start again with these panes, all in the back, and sums split so that theirs and `more` fit."""
        self._split = StateSplit.of(self._layout.plan, [*more, *(pane.tops for pane in panes)])
        self._older, self._younger = [], []
        self._totals = np.zeros((self._split.sums_width, 0), np.int64).T
        self._front, self._back = self._split.empty_stack(0), self._split.empty_stack(0)
        self._make_room()  # for the known keys, even if there is no pane
        for pane in panes:
            self._push(pane.index, pane.partial, self._layout.states(pane.partial), pane.tops)

    def _push(self, index: int, partial: pa.Table, states: IntArray, tops: Tops) -> None:
        numbers, split = self._keys.numbers(partial), self._split
        self._make_room()
        order = frozen(sliding_states.rows_by_number(numbers, self._keys.count))
        ids = frozen(numbers[order])
        sums = sliding_states.sums_of(states, order, split.sums, split.sums_width)
        stacked = sliding_states.stacked_of(states, order, split.stacked, split.stacked_width)
        sliding_states.add_sums(self._totals, ids, sums)
        keyed.merge_states(self._back, ids, stacked, split.stacked)
        self._younger.append(_Pane(index, partial, tops, ids, sums, stacked))

    def _make_room(self) -> None:
        room = len(self._totals)
        if self._keys.count > room:
            more = max(self._keys.count, 2 * room) - room
            empty = self._split.empty_stack(more)
            self._totals = np.pad(self._totals.T, ((0, 0), (0, more))).T
            self._front, self._back = (
                np.concatenate([table.T, empty.T], axis=1).T for table in (self._front, self._back)
            )

    def _flip(self, pane: int) -> None:
        """Move the panes of the back to the front, without those before `pane`; forget keys that no pane has left."""
        for one in self._younger:
            if one.index < pane:
                sliding_states.take_away(self._totals, one.ids, one.sums)
        kept = [one for one in self._younger if one.index >= pane]
        if self._split.is_worse_than_of(one.tops for one in kept):
            self._begin(kept)
            kept = self._younger
        needed = np.zeros(self._keys.count, np.bool_)
        for one in kept:
            needed[one.ids] = True
        numbers = self._keys.keep(needed)
        if self._keys.count < len(needed):
            self._totals = np.ascontiguousarray(self._totals[: len(needed)][needed].T).T
        room = len(self._totals)
        self._front, self._back = self._split.empty_stack(room), self._split.empty_stack(room)
        self._older, self._younger = [], []
        for one in reversed(kept):
            one.ids = frozen(numbers[one.ids])
            one.before = keyed.merge_noting(self._front, one.ids, one.stacked, self._split.stacked)
            self._older.append(one)
