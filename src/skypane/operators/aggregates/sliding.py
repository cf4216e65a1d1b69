"""The keys' states over a window that slides: sums of which panes are taken away again, and two stacks for all else.

Sums are integers, those of floating-point numbers too (kernels/exact.py), so taking away what leaves a window is exact:

    push    adds a pane's sums to those of its keys
    evict   takes the oldest pane's away

A maximum has no inverse, so that its states lie in a queue that knows the merger of all panes in it (two stacks). Kept as
tables of all keys, a pane's stack would hold panes x keys states; but a pane changes only the keys that it has. So:

    front   all keys, the merger of the older panes; for each of them what its keys were before it was merged in
    back    all keys, the merger of the younger panes

    push    merges a pane's keys into the back
    evict   puts back what the oldest pane's keys were
    flip    when the front is used up: the back's panes are merged into the front, the youngest first, noting what was

A pane's key costs an addition, a subtraction, two merges and two copies altogether, however many windows the pane is in; an
answer costs a copy and a merge for each key in the window, which is what it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skypane.kernels import keyed, sliding
from skypane.kernels.layout import frozen
from skypane.kernels.split import Split, Tops, tops_in
from skypane.operators.aggregates.choice import Choice
from skypane.operators.aggregates.layout import Layout
from skypane.operators.aggregates.numbering import KeyNumbers
from skypane.types import IntArray


@dataclass
class _Pane:
    """A pane in the queue: its keys' numbers, what they come to, and what they were in the front before it, once it is there."""

    index: int
    partial: pa.Table
    tops: Tops
    ids: IntArray
    sums: Any
    stacked: Any
    before: Any = None


class SlidingStates:
    """A queue of partials of one layout, states of integers only; as window_query.TwoStacks is for any partials."""

    def __init__(self, by: Sequence[str], layout: Layout, choice: Choice) -> None:
        self._choice = choice
        self._layout = layout
        self._keys = KeyNumbers(pa.schema([layout.rows.field(name) for name in by]))
        #: the oldest pane last
        self._older: list[_Pane] = []
        #: the youngest last
        self._younger: list[_Pane] = []
        self._begin([])

    def push(self, pane: int, partial: pa.Table) -> None:
        """Add a pane younger than all."""
        states = self._layout.states(partial)
        tops = tops_in(states, self._layout.plan)
        if not self._split.holds(tops):
            self._begin([*reversed(self._older), *self._younger], tops)
        self._push(pane, partial, states, tops)

    def evict_before(self, pane: int) -> None:
        """Forget every pane older than `pane`."""
        while self._older and self._older[-1].index < pane:
            oldest = self._older.pop()
            sliding.take_away(self._totals, oldest.ids, oldest.sums)
            keyed.put_states(self._front, oldest.ids, oldest.before)
        if self._younger and self._younger[0].index < pane:
            self._flip(pane)

    def answer(self) -> pa.Table:
        """Return the answer of all panes, one row per key that has rows in them."""
        count, split = self._keys.count, self._split
        states = sliding.window_states(
            self._totals, self._front, self._back, count, split.width, split.sums, split.stacked
        )
        ids = keyed.rows_with(states)
        if len(ids) == count:
            return self._choice.of(self._layout.lowered(self._keys.keys, states))
        taken = keyed.take_states(states, ids)
        return self._choice.of(self._layout.lowered(self._keys.keys.take(pa.array(ids)), taken))

    def _begin(self, panes: Sequence[_Pane], *more: Tops) -> None:
        """Begin anew with some panes, all in the back, and sums divided so that theirs fit, and `more`."""
        self._split = Split.of(self._layout.plan, [*more, *(pane.tops for pane in panes)])
        self._older, self._younger = [], []
        self._totals = np.zeros((self._split.sums_width, 0), np.int64).T
        self._front, self._back = self._split.empty_stack(0), self._split.empty_stack(0)
        self._make_room()  # for the keys that are known, should there be no pane
        for pane in panes:
            self._push(pane.index, pane.partial, self._layout.states(pane.partial), pane.tops)

    def _push(self, index: int, partial: pa.Table, states: IntArray, tops: Tops) -> None:
        numbers, split = self._keys.numbers(partial), self._split
        self._make_room()
        order = frozen(sliding.rows_by_number(numbers, self._keys.count))
        ids = frozen(numbers[order])
        sums = sliding.sums_of(states, order, split.sums, split.sums_width)
        stacked = sliding.stacked_of(states, order, split.stacked, split.stacked_width)
        sliding.add_sums(self._totals, ids, sums)
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
        """Make the back's panes the front, those before `pane` left out; keys that no pane has any more are forgotten."""
        for one in self._younger:
            if one.index < pane:
                sliding.take_away(self._totals, one.ids, one.sums)
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
