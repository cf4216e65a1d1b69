"""Kernels of the columnar merge: the progress of inputs, and the order of tuples of many inputs."""

from __future__ import annotations

from typing import Final

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.types import IntArray

_BITS: Final = 11
_DIGITS: Final = 1 << _BITS


@kernel
def advance(newest: IntArray, times: IntArray, inputs: IntArray) -> int:
    """Advance the newest time of each input row by row; return the first row that goes backwards, or -1."""
    for row in range(times.size):
        if times[row] < newest[inputs[row]]:
            return row
        newest[inputs[row]] = times[row]
    return -1


@inlined
def pass_digit(keys: IntArray, order: IntArray, to_keys: IntArray, to_order: IntArray, shift: int) -> None:
    """Sort stably by one digit."""
    begins = np.zeros(_DIGITS + 1, np.int64)
    for at in range(keys.size):
        begins[((keys[at] >> shift) & (_DIGITS - 1)) + 1] += 1
    for digit in range(_DIGITS):
        begins[digit + 1] += begins[digit]
    for at in range(keys.size):
        digit = (keys[at] >> shift) & (_DIGITS - 1)
        place = begins[digit]
        begins[digit] += 1
        to_keys[place], to_order[place] = keys[at], order[at]


@kernel
def sorted_order(times: IntArray, inputs: IntArray) -> IntArray:
    """Return the order by (time, input, sequence), by a radix sort from the lowest digit: first inputs, then times.

    There is one pass per 11 bits of the largest input and of the span of times; inputs must not be negative.
    """
    order = np.arange(times.size)
    if times.size < 2:
        return order
    keys = inputs.copy()
    other_keys, other_order = np.empty_like(keys), np.empty_like(order)
    low = times.min()
    for column in range(2):
        most = inputs.max() if column == 0 else times.max() - low
        if column == 1:
            for at in range(order.size):
                keys[at] = times[order[at]] - low
        shift = 0
        while shift < 63 and most >> shift > 0:
            pass_digit(keys, order, other_keys, other_order, shift)
            keys, other_keys, order, other_order = other_keys, keys, other_order, order
            shift += _BITS
    return order
