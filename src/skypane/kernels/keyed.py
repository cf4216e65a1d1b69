"""Aggregates by key: the numbering of rows by group, and the merging of the groups' states.

A state is a row of an int64 matrix (groups, width). Its columns are divided into parts, each merged in one of three
ways:

    ADD     every column is added
    EXACT   the sum of exact.py
    LEAST   the smaller row, compared column by column, is kept whole

All ways are associative and commutative to the bit, for all values. parts is (p, 3): way, first column, columns.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.kernels.exact import WIDTH, merge_exact
from skypane.types import BoolArray, FloatArray, IntArray

ADD: Final = 0
EXACT: Final = 1
LEAST: Final = 2

NONE: Final = 1
"""Value of the first column of a LEAST part without a row; 0 means that there is one."""


@kernel
def number_groups(codes: IntArray, size: int, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the group of each row, numbered in the order of first rows, and the first row of each group.

    codes are in [0, size); rows are stored pane by pane, pane i from row starts[i] on; a group is a code in a pane.
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
def keep_smaller(states: Any, row: int, other: Any, other_row: int, at: int, width: int) -> None:
    """Keep the smaller of two rows of a LEAST part."""
    for column in range(at, at + width):
        if states[row, column] != other[other_row, column]:
            if other[other_row, column] < states[row, column]:
                for kept in range(column, at + width):
                    states[row, kept] = other[other_row, kept]
            break


@kernel
def merge_states(states: Any, ids: IntArray, others: Any, parts: IntArray) -> None:
    """Merge row i of `others` into row ids[i] of `states`, part by part, so that each part has a short loop."""
    for part in range(parts.shape[0]):
        way, at, width = parts[part, 0], parts[part, 1], parts[part, 2]
        if way == ADD:
            for column in range(at, at + width):
                for row in range(ids.size):
                    states[ids[row], column] += others[row, column]
        elif way == EXACT:
            for row in range(ids.size):
                merge_exact(states, ids[row], at, others, row, at)
        elif width == 2:
            for row in range(ids.size):
                put_smaller(states, ids[row], at, states, ids[row], others, row, at)
        else:
            for row in range(ids.size):
                keep_smaller(states, ids[row], others, row, at, width)


@kernel
def merge_noting(states: Any, ids: IntArray, others: Any, parts: IntArray) -> Any:
    """Merge as merge_states(), with distinct ids; return the previous rows, column-major."""
    before = np.empty((states.shape[1], ids.size), np.int64).T
    for column in range(states.shape[1]):
        for row in range(ids.size):
            before[row, column] = states[ids[row], column]
    merge_states(states, ids, others, parts)
    return before


@kernel
def put_states(states: Any, ids: IntArray, others: Any) -> None:
    """Replace row ids[i] of `states` by row i of `others`."""
    for column in range(states.shape[1]):
        for row in range(ids.size):
            states[ids[row], column] = others[row, column]


@inlined
def put_smaller(
    merged: Any, row: int, target: int, front: Any, front_row: int, back: Any, back_row: int, at: int
) -> None:
    """Write the smaller of two minima (or maxima, whose keys are inverted), each in two columns, without a branch."""
    none, key = front[front_row, at], front[front_row, at + 1]
    other_none, other = back[back_row, at], back[back_row, at + 1]
    smaller = (other_none < none) | ((other_none == none) & (other < key))
    merged[row, target] = other_none if smaller else none
    merged[row, target + 1] = other if smaller else key


@inlined
def merge_least(merged: Any, target: int, front: Any, back: Any, n: int, at: int, width: int) -> None:
    """Merge a LEAST part of two tables, from column `at` on, into columns of a third, from `target` on."""
    if width == 2:
        for row in range(n):
            put_smaller(merged, row, target, front, row, back, row, at)
        return
    for row in range(n):
        smaller = False
        for column in range(at, at + width):
            if front[row, column] != back[row, column]:
                smaller = back[row, column] < front[row, column]
                break
        for column in range(width):
            merged[row, target + column] = back[row, at + column] if smaller else front[row, at + column]


@inlined
def merge_exact_rows(merged: Any, target: int, front: Any, back: Any, n: int, at: int) -> None:
    """Merge exact sums of two tables, from column `at` on, into columns of a third, from `target` on."""
    for row in range(n):
        for column in range(WIDTH):
            merged[row, target + column] = front[row, at + column]
        merge_exact(merged, row, target, back, row, at)


@kernel
def divide(sums: FloatArray, counts: IntArray) -> bool:
    """Divide sums by counts in place; return whether a count is 0, for which there is no mean."""
    none = False
    for row in range(sums.size):
        none |= counts[row] == 0
        sums[row] /= max(counts[row], 1)
    return none


@kernel
def numbers_of(keys: IntArray, largest: bool) -> FloatArray:
    """Return the float64 numbers of keys (operators/aggregates/ordered_int64.py); `largest`: the keys are inverted."""
    bits = np.empty(keys.size, np.int64)
    for row in range(keys.size):
        key = ~keys[row] if largest else keys[row]
        bits[row] = key ^ ((key >> 63) & 0x7FFFFFFFFFFFFFFF)
    return bits.view(np.float64)


@kernel
def rows_with(states: Any) -> IntArray:
    """Return the indices of the states that have rows; column 0 counts the rows."""
    n = states.shape[0]
    ids = np.empty(n, np.int64)
    count = 0
    for row in range(n):
        ids[count] = row
        count += states[row, 0] > 0
    return ids[:count]


@kernel
def take_states(states: Any, ids: IntArray) -> Any:
    """Return the given rows, column-major."""
    taken = np.empty((states.shape[1], ids.size), np.int64).T
    for column in range(states.shape[1]):
        for row in range(ids.size):
            taken[row, column] = states[ids[row], column]
    return taken


@kernel
def add_counts(states: Any, at: int, ids: IntArray, keep: BoolArray) -> None:
    """Count the rows of each group."""
    for row in range(ids.size):
        if keep[row]:
            states[ids[row], at] += 1


@kernel
def add_integers(states: Any, at: int, ids: IntArray, numbers: IntArray, keep: BoolArray) -> None:
    """Add integers to two columns, of their upper and lower 32 bits: neither overflows before 2**31 rows."""
    for row in range(ids.size):
        if keep[row]:
            states[ids[row], at] += numbers[row] >> 32
            states[ids[row], at + 1] += numbers[row] & 0xFFFFFFFF


@kernel
def keep_least(states: Any, at: int, ids: IntArray, keys: IntArray, keep: BoolArray) -> None:
    """Keep the least row of `keys` (n, w) of each group, compared column by column."""
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
    "divide",
    "empty_states",
    "keep_least",
    "merge_exact_rows",
    "merge_least",
    "merge_noting",
    "merge_states",
    "number_groups",
    "numbers_of",
    "put_states",
    "rows_with",
    "take_states",
]
