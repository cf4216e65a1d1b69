"""The event heap, ordered by time; events at the same time are in the order in which they were pushed.

A heap has four arrays: time (c,), sequence (c,), item (c,), and use (2,), the events in the heap and the events pushed
so far. The functions are compiled into their callers and take the arrays as separate arguments, since passing a tuple
of arrays costs more than a step of the heap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skypane.kernels.compiled import inlined
from skypane.types import FloatArray, IntArray


class EventHeap(NamedTuple):
    """The arrays of a heap."""

    time: FloatArray
    sequence: IntArray
    item: IntArray
    use: IntArray


def empty_heap(capacity: int) -> EventHeap:
    """Return an empty heap with room for `capacity` events."""
    whole = np.int64
    return EventHeap(np.zeros(capacity), np.zeros(capacity, whole), np.zeros(capacity, whole), np.zeros(2, whole))


@inlined
def push(time: FloatArray, sequence: IntArray, item: IntArray, use: IntArray, at_time: float, what: int) -> None:
    """Add an event."""
    at = use[0]
    number = use[1]
    use[0] += 1
    use[1] += 1
    while at > 0:
        parent = (at - 1) >> 1
        if time[parent] <= at_time:  # at equal times, the parent was pushed before
            break
        time[at] = time[parent]
        sequence[at] = sequence[parent]
        item[at] = item[parent]
        at = parent
    time[at] = at_time
    sequence[at] = number
    item[at] = what


@inlined
def sink(
    time: FloatArray, sequence: IntArray, item: IntArray, size: int, at_time: float, number: int, what: int
) -> None:
    """Insert an event at the root and sift it down."""
    at = 0
    child = 1
    while child < size:
        right = child + 1
        if right < size and (
            time[right] < time[child] or (time[right] == time[child] and sequence[right] < sequence[child])
        ):
            child = right
        if at_time < time[child] or (at_time == time[child] and number < sequence[child]):
            break
        time[at] = time[child]
        sequence[at] = sequence[child]
        item[at] = item[child]
        at = child
        child = 2 * at + 1
    time[at] = at_time
    sequence[at] = number
    item[at] = what


@inlined
def pop(time: FloatArray, sequence: IntArray, item: IntArray, use: IntArray) -> None:
    """Remove the first event; its time and item are those at index 0 before the call."""
    use[0] -= 1
    last = use[0]
    sink(time, sequence, item, last, time[last], sequence[last], item[last])


@inlined
def replace_first(
    time: FloatArray, sequence: IntArray, item: IntArray, use: IntArray, at_time: float, what: int
) -> None:
    """Remove the first event and add another, faster than a pop and a push."""
    number = use[1]
    use[1] += 1
    sink(time, sequence, item, use[0], at_time, number, what)
