"""The keys' states over a window that slides: two stacks, of which the front is one table and a list of what it was.

A queue of panes that knows the merger of all of them, for states that need not be invertible (two stacks). Kept as tables of
all keys, a pane's stack would hold panes x keys states; but a pane changes only the keys that it has. So:

    front   all keys, the merger of the older panes; for each of them what its keys were before it was merged in
    back    all keys, the merger of the younger panes

    push    merges a pane's keys into the back
    evict   puts back what the oldest pane's keys were: nothing is subtracted, so floating point and extremes are exact
    flip    when the front is used up: the back's panes are merged into the front, the youngest first, noting what was

A pane's key costs two merges and two copies altogether, however many windows the pane is in; an answer costs a merge for
each key in the window, which is what it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skypane.kernels import keyed
from skypane.kernels.layout import frozen
from skypane.operators.aggregates.choice import Choice
from skypane.operators.aggregates.layout import Layout
from skypane.operators.aggregates.numbering import KeyNumbers
from skypane.types import IntArray


class SlidingStates:
    """A queue of partials of one layout, states of integers only; as window_query.TwoStacks is for any partials."""

    def __init__(self, by: Sequence[str], layout: Layout, choice: Choice) -> None:
        self._choice = choice
        self._layout = layout
        self._keys = KeyNumbers(pa.schema([layout.rows.field(name) for name in by]))
        #: (pane, its keys' ids, what they were in the front before it), the oldest pane last
        self._older: list[tuple[int, IntArray, Any]] = []
        #: (pane, its keys' ids, its partial), the youngest last
        self._younger: list[tuple[int, IntArray, pa.Table]] = []
        self._front, self._back = self._empty(0), self._empty(0)

    def push(self, pane: int, partial: pa.Table) -> None:
        """Add a pane younger than all."""
        ids = self._keys.numbers(partial)
        if self._keys.count > len(self._front):
            more = max(self._keys.count, 2 * len(self._front)) - len(self._front)
            self._front, self._back = (
                np.concatenate([table.T, self._empty(more).T], axis=1).T for table in (self._front, self._back)
            )
        keyed.merge_states(self._back, ids, self._layout.states(partial), self._layout.plan)
        self._younger.append((pane, ids, partial))

    def evict_before(self, pane: int) -> None:
        """Forget every pane older than `pane`."""
        while self._older and self._older[-1][0] < pane:
            _, ids, before = self._older.pop()
            keyed.put_states(self._front, ids, before)
        if self._younger and self._younger[0][0] < pane:
            self._flip(pane)

    def answer(self) -> pa.Table:
        """Return the answer of all panes, one row per key that has rows in them."""
        count = self._keys.count
        states = keyed.merged_states(self._front, self._back, count, self._layout.plan)
        ids = keyed.rows_with(states)
        if len(ids) == count:
            return self._choice.of(self._layout.lowered(self._keys.keys, states))
        taken = keyed.take_states(states, ids)
        return self._choice.of(self._layout.lowered(self._keys.keys.take(pa.array(ids)), taken))

    def _flip(self, pane: int) -> None:
        """Make the back's panes the front, those before `pane` left out; keys that no pane has any more are forgotten."""
        kept = [(index, ids, partial) for index, ids, partial in self._younger if index >= pane]
        needed = np.zeros(self._keys.count, np.bool_)
        for _, ids, _ in kept:
            needed[ids] = True
        numbers = self._keys.keep(needed)
        self._front, self._back = self._empty(self._keys.count), self._empty(self._keys.count)
        self._older, self._younger = [], []
        for index, ids, partial in reversed(kept):
            now, states = frozen(numbers[ids]), self._layout.states(partial)
            self._older.append((index, now, keyed.merge_noting(self._front, now, states, self._layout.plan)))

    def _empty(self, n: int) -> Any:
        """Return n empty states, (n, width), column by column in memory: an answer is made column by column."""
        return np.asfortranarray(keyed.empty_states(n, self._layout.width, self._layout.plan))
