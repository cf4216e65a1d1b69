"""Aggregates by key: rows numbered by group, and the groups' states merged.

A state is a row of an int64 matrix (groups, width); its columns are cut into parts, each merged in one of three ways:

    ADD     every column is added
    EXACT   the sum of exact.py
    LEAST   the row that is smaller, compared column by column, is kept whole

All are associative and commutative to the bit, whatever they hold. parts is (p, 3): way, first column, columns.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.kernels.exact import WIDTH, merge_exact
from skypane.types import BoolArray, IntArray

ADD: Final = 0
EXACT: Final = 1
LEAST: Final = 2

NONE: Final = 1
"""In the first column of a LEAST part: nothing yet; 0 where there is something."""


@kernel
def number_groups(codes: IntArray, size: int, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the group of each row, numbered in the order of first rows, and each group's first row.

    codes are in [0, size); rows lie pane by pane, pane i from row starts[i] on; a group is a code in a pane.
    """
    n = codes.size
    seen = np.full(size, -1, np.int64)
    numbers = np.empty(size, np.int64)
    ids, firsts = np.empty(n, np.int64), np.empty(n, np.int64)
    count, pane = 0, 0
    for row in range(n):
        while pane + 1 < starts.size and starts[pane + 1] <= row:
            pane += 1
        code = codes[row]
        if seen[code] != pane:
            seen[code] = pane
            numbers[code] = count
            firsts[count] = row
            count += 1
        ids[row] = numbers[code]
    return ids, firsts[:count].copy()


@kernel
def empty_states(n: int, width: int, parts: IntArray) -> IntArray:
    """Return the states of n groups without rows."""
    states = np.zeros((n, width), np.int64)
    for part in range(parts.shape[0]):
        if parts[part, 0] != ADD:
            states[:, parts[part, 1]] = -1 if parts[part, 0] == EXACT else NONE
    return states


@inlined
def merge_state(states: Any, row: int, other: Any, other_row: int, parts: Any) -> None:
    """Merge one state into another."""
    for part in range(parts.shape[0]):
        way, at, width = parts[part, 0], parts[part, 1], parts[part, 2]
        if way == ADD:
            for column in range(at, at + width):
                states[row, column] += other[other_row, column]
        elif way == EXACT:
            merge_exact(states, row, at, other, other_row)
        else:
            for column in range(at, at + width):
                if states[row, column] != other[other_row, column]:
                    if other[other_row, column] < states[row, column]:
                        for kept in range(column, at + width):
                            states[row, kept] = other[other_row, kept]
                    break


@kernel
def merge_states(states: Any, ids: IntArray, others: Any, parts: IntArray) -> None:
    """Merge row i of `others` into row ids[i] of `states`."""
    for row in range(ids.size):
        merge_state(states, ids[row], others, row, parts)


@kernel
def merge_noting(states: Any, ids: IntArray, others: Any, parts: IntArray) -> IntArray:
    """Merge as merge_states() does, no id twice; return what stood there before."""
    before = np.empty((ids.size, states.shape[1]), np.int64)
    for row in range(ids.size):
        before[row] = states[ids[row]]
        merge_state(states, ids[row], others, row, parts)
    return before


@kernel
def put_states(states: Any, ids: IntArray, others: Any) -> None:
    """Put row i of `others` in place of row ids[i] of `states`."""
    for row in range(ids.size):
        states[ids[row]] = others[row]


@kernel
def merged_states(front: Any, back: Any, parts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the ids that have rows in one of two tables of states, and their states merged; column 0 counts rows."""
    n, width = front.shape
    ids, states = np.empty(n, np.int64), np.empty((n, width), np.int64)
    count = 0
    for row in range(n):
        if front[row, 0] + back[row, 0] > 0:
            ids[count] = row
            states[count] = front[row]
            if back[row, 0] > 0:
                merge_state(states, count, back, row, parts)
            count += 1
    return ids[:count], states[:count]


@kernel
def add_counts(states: Any, at: int, ids: IntArray, keep: BoolArray) -> None:
    """Count the rows of each group."""
    for row in range(ids.size):
        if keep[row]:
            states[ids[row], at] += 1


@kernel
def add_integers(states: Any, at: int, ids: IntArray, numbers: IntArray, keep: BoolArray) -> None:
    """Add integers in two columns, upper and lower 32 bits: neither overflows before 2**31 rows."""
    for row in range(ids.size):
        if keep[row]:
            states[ids[row], at] += numbers[row] >> 32
            states[ids[row], at + 1] += numbers[row] & 0xFFFFFFFF


@kernel
def keep_least(states: Any, at: int, ids: IntArray, keys: IntArray, keep: BoolArray) -> None:
    """Keep each group's least row of `keys` (n, w), compared column by column."""
    for row in range(ids.size):
        if not keep[row]:
            continue
        state = ids[row]
        smaller = states[state, at] == NONE
        if not smaller:
            for column in range(keys.shape[1]):
                if keys[row, column] != states[state, at + 1 + column]:
                    smaller = keys[row, column] < states[state, at + 1 + column]
                    break
        if smaller:
            states[state, at] = 0
            for column in range(keys.shape[1]):
                states[state, at + 1 + column] = keys[row, column]


__all__ = [
    "ADD",
    "EXACT",
    "LEAST",
    "WIDTH",
    "add_counts",
    "add_integers",
    "empty_states",
    "keep_least",
    "merge_noting",
    "merge_states",
    "merged_states",
    "number_groups",
    "put_states",
]
