"""Aggregates of a worker's tuples per pane and numbered key, as one table row per pane (columnar WiML).

Keys are 0 to K - 1 and used as indices, without a search. A tuple changes one state, that of its pane; the states of a
window are combined from its panes when it is complete, all keys at once. Pane p is in row p modulo the number of rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.types import BytesArray, IntArray
from skypane_papers.multiway.kernels.texts import ANY, contributes
from skypane_papers.multiway.kernels.whive import COUNT, FIRST, MAX, NO_TEXTS


class PaneTables(NamedTuple):
    """The tables of one worker."""

    function: int
    pane: int
    keys: int
    where: int
    offsets: IntArray
    data: BytesArray
    #: (rows, keys): numbers of tuples, and states
    counts: Any
    states: Any


@inlined
def change(tables: Any, row: int, key: int, value: int) -> None:
    """Update a pane's state with a tuple."""
    first = tables.counts[row, key] == 0
    tables.counts[row, key] += 1
    if tables.function == COUNT:
        return
    if first:
        tables.states[row, key] = value
    elif tables.function == MAX:
        tables.states[row, key] = max(tables.states[row, key], value)
    elif tables.function != FIRST:
        tables.states[row, key] += value


@kernel
def update_panes(tables: Any, times: IntArray, keys: IntArray, values: IntArray, end: int) -> int:
    """Update panes with tuples in order; return the row of the first tuple of pane `end` or later, or the length."""
    for row in range(times.size):
        pane = times[row] // tables.pane
        if pane >= end:
            return row
        if tables.where == ANY or contributes(tables.where, tables.offsets, tables.data, values[row]):
            change(tables, pane % tables.counts.shape[0], keys[row], values[row])
    return times.size


@kernel
def add_pane(tables: Any, pane: int, sign: int, counts: IntArray, states: IntArray) -> None:
    """Add a pane to a window, or subtract it (sign = -1), which is possible for counts and sums only."""
    row = pane % tables.counts.shape[0]
    for key in range(tables.keys):
        counts[key] += sign * tables.counts[row, key]
        states[key] += sign * tables.states[row, key]


@kernel
def join_pane(tables: Any, pane: int, counts: IntArray, states: IntArray) -> None:
    """Combine a pane with the earlier panes of a window, for maxima and first values."""
    row = pane % tables.counts.shape[0]
    for key in range(tables.keys):
        if tables.counts[row, key] == 0:
            continue
        if counts[key] == 0:
            states[key] = tables.states[row, key]
        elif tables.function == MAX:
            states[key] = max(states[key], tables.states[row, key])
        counts[key] += tables.counts[row, key]


@kernel
def clear_pane(tables: Any, pane: int) -> None:
    """Clear a pane's row for a later pane."""
    row = pane % tables.counts.shape[0]
    tables.counts[row] = 0
    tables.states[row] = 0


def new_tables(
    pane: int,
    keys: int,
    rows: int,
    function: int,
    where: int = ANY,
    texts: tuple[IntArray, BytesArray] = NO_TEXTS,
) -> PaneTables:
    """Return empty tables for `rows` panes at a time."""
    states = np.zeros((rows, keys), np.int64)
    return PaneTables(function, pane, keys, where, *texts, np.zeros_like(states), states)
