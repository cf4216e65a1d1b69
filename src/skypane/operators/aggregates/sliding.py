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

import numpy as np
import pyarrow as pa

from skypane.kernels import keyed
from skypane.kernels.layout import frozen
from skypane.operators.aggregates.grouping import dense_codes
from skypane.operators.aggregates.layout import Layout
from skypane.types import IntArray


class SlidingStates:
    """A queue of partials of one layout, states of integers only; as window_query.TwoStacks is for any partials."""

    def __init__(self, by: Sequence[str], layout: Layout) -> None:
        self._by = list(by)
        self._layout = layout
        self._keys = pa.schema([layout.rows.field(name) for name in by]).empty_table()
        self._count = 0
        #: (pane, its keys' ids, what they were in the front before it), the oldest pane last
        self._older: list[tuple[int, IntArray, IntArray]] = []
        #: (pane, its keys' ids, its partial), the youngest last
        self._younger: list[tuple[int, IntArray, pa.Table]] = []
        self._front = self._empty(0)
        self._back = self._empty(0)

    def push(self, pane: int, partial: pa.Table) -> None:
        """Add a pane younger than all."""
        ids = self._numbered(partial)
        keyed.merge_states(self._back, ids, self._layout.states(partial), self._layout.plan)
        self._younger.append((pane, ids, partial))

    def evict_before(self, pane: int) -> None:
        """Forget every pane older than `pane`."""
        while self._older and self._older[-1][0] < pane:
            _, ids, before = self._older.pop()
            keyed.put_states(self._front, ids, before)
        if self._younger and self._younger[0][0] < pane:
            self._flip(pane)

    def combined(self) -> pa.Table:
        """Return the merger of all panes, one row per key that has rows in them."""
        ids, states = keyed.merged_states(self._front[: self._count], self._back[: self._count], self._layout.plan)
        keys = self._keys if len(ids) == self._count else self._keys.take(pa.array(ids))
        return self._layout.partial(keys, states)

    def _flip(self, pane: int) -> None:
        """Make the back's panes the front, those before `pane` left out; keys that no pane has any more are forgotten."""
        kept = [(index, ids, partial) for index, ids, partial in self._younger if index >= pane]
        needed = np.zeros(self._count, np.bool_)
        for _, ids, _ in kept:
            needed[ids] = True
        numbers = np.cumsum(needed) - 1
        if not needed.all():
            self._keys = self._keys.take(pa.array(np.flatnonzero(needed)))
        self._count = int(needed.sum())
        self._front, self._back = self._empty(self._count), self._empty(self._count)
        self._older, self._younger = [], []
        for index, ids, partial in reversed(kept):
            now, states = frozen(numbers[ids]), self._layout.states(partial)
            self._older.append((index, now, frozen(keyed.merge_noting(self._front, now, states, self._layout.plan))))

    def _numbered(self, partial: pa.Table) -> IntArray:
        """Return the numbers of a partial's keys; new ones get the next, and empty states."""
        keys = partial.select(self._by)
        if not self._by:
            self._count = 1
            ids = np.zeros(partial.num_rows, np.int64)
        elif self._count == partial.num_rows and keys.equals(self._keys):
            ids = np.arange(self._count)
        else:
            together = pa.concat_tables([self._keys, keys]).combine_chunks()
            codes, size = dense_codes(together, self._by)
            numbers, firsts = keyed.number_groups(frozen(codes), size, frozen(np.zeros(1, np.int64)))
            ids = numbers[self._count :]
            if len(firsts) > self._count:
                self._keys = together.take(pa.array(firsts))
                self._count = len(firsts)
        if self._count > len(self._front):
            more = max(self._count, 2 * len(self._front)) - len(self._front)
            self._front = np.concatenate([self._front, self._empty(more)])
            self._back = np.concatenate([self._back, self._empty(more)])
        return frozen(np.ascontiguousarray(ids))

    def _empty(self, n: int) -> IntArray:
        return keyed.empty_states(n, self._layout.width, self._layout.plan)
