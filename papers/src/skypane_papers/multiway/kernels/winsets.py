"""Winsets that a single thread updates with tuples in time order, for MQ and TuMLSC.

Winset i, of the windows that start at i * advance, uses slot i modulo the number of slots; the older winset in that
slot has been delivered by then. A winset is a table of keys with open addressing.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.types import BytesArray, IntArray
from skypane_papers.multiway.kernels.texts import ANY, contributes
from skypane_papers.multiway.kernels.whive import COUNT, END, FIRST, MAX, NO_TEXTS, NOTHING, place_in

OLDEST: Final = 0
"""Index in `at` of the number of the oldest winset that may have tuples."""


class Winsets(NamedTuple):
    """The winsets of one aggregate."""

    function: int
    size: int
    advance: int
    #: capacity of a winset in keys, a power of two
    room: int
    where: int
    offsets: IntArray
    data: BytesArray
    slots: int
    at: IntArray
    #: by slot: number of keys
    filled: IntArray
    #: by slot and key, at slot * room + place
    keys: IntArray
    states: IntArray
    counts: IntArray


@inlined
def place_of(winsets: Any, slot: int, key: int) -> Any:
    """Return the place of a key's state in a winset; END if the table is full."""
    first = slot * winsets.room
    at = place_in(winsets.room, key)
    for _ in range(winsets.room):
        known = winsets.keys[first + at]
        if known == key:
            return first + at
        if known == NOTHING:
            winsets.keys[first + at] = key
            winsets.filled[slot] += 1
            return first + at
        at = (at + 1) & (winsets.room - 1)
    return END


@inlined
def process_tuple(winsets: Any, place: int, value: int) -> None:
    """Update a state with a tuple (processTuple)."""
    before = winsets.states[place]
    winsets.counts[place] += 1
    if before == NOTHING:
        winsets.states[place] = 1 if winsets.function == COUNT else value
    elif winsets.function == COUNT:
        winsets.states[place] = before + 1
    elif winsets.function == MAX:
        winsets.states[place] = max(before, value)
    elif winsets.function != FIRST:
        winsets.states[place] = before + value


@inlined
def first_number(winsets: Any, time: int) -> Any:
    """Return the number of the earliest window that contains a time."""
    return (time - winsets.size) // winsets.advance + 1


@inlined
def oldest_number(winsets: Any, before: int) -> Any:
    """Return the number of the oldest winset with tuples before the number `before`; `before` if there is none."""
    number = winsets.at[OLDEST]
    last = min(before, number + winsets.slots)
    while number < last and winsets.filled[number % winsets.slots] == 0:
        number += 1
    return number if number < last else before


@kernel
def update_in_order(winsets: Any, times: IntArray, keys: IntArray, values: IntArray, begin: int) -> int:
    """Update windows with tuples in order, from row `begin` on; return the first row that was not processed.

    A tuple after the end of a winset is not processed, because the winset must be delivered first (Update, Output). For
    a tuple whose key finds no room, return END - row.
    """
    for row in range(begin, times.size):
        first, last = first_number(winsets, times[row]), times[row] // winsets.advance
        winsets.at[OLDEST] = first if winsets.at[OLDEST] == NOTHING else oldest_number(winsets, first)
        if winsets.at[OLDEST] < first:
            return row
        if winsets.where != ANY and not contributes(winsets.where, winsets.offsets, winsets.data, values[row]):
            continue
        for number in range(first, last + 1):
            place = place_of(winsets, number % winsets.slots, keys[row])
            if place == END:
                return END - row
            process_tuple(winsets, place, values[row])
    return times.size


@kernel
def deliver(winsets: Any, keys: IntArray, states: IntArray, counts: IntArray) -> tuple[int, int]:
    """Take the oldest winset; return its start and number of keys, or (NOTHING, 0) if all winsets are empty."""
    if winsets.at[OLDEST] == NOTHING:
        return NOTHING, 0
    end = winsets.at[OLDEST] + winsets.slots
    number = oldest_number(winsets, end)
    if number == end:
        return NOTHING, 0
    slot, count = number % winsets.slots, 0
    for place in range(slot * winsets.room, (slot + 1) * winsets.room):
        if winsets.keys[place] != NOTHING:
            keys[count], states[count], counts[count] = (
                winsets.keys[place],
                winsets.states[place],
                winsets.counts[place],
            )
            winsets.keys[place], winsets.states[place], winsets.counts[place] = NOTHING, NOTHING, 0
            count += 1
    winsets.filled[slot] = 0
    winsets.at[OLDEST] = number + 1
    return number * winsets.advance, count


def new_winsets(
    size: int,
    advance: int,
    function: int,
    room: int,
    where: int = ANY,
    texts: tuple[IntArray, BytesArray] = NO_TEXTS,
) -> Winsets:
    """Return empty winsets."""
    slots = -(-size // advance) + 1
    cells = slots * room
    return Winsets(
        function, size, advance, room, where, *texts, slots, np.full(1, NOTHING), np.zeros(slots, np.int64),
        np.full(cells, NOTHING), np.full(cells, NOTHING), np.zeros(cells, np.int64),
    )  # fmt: skip
