"""Winsets that one thread updates, by tuples in the order of time: no more is needed behind MQ and TuMLSC.

Winset i, of the windows that start at i * advance, lies at i modulo the winsets that one time has: an older one has been
delivered by then. A winset is a table of keys with open addressing.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.kernels.hashing import place_in
from skypane.kernels.texts import ANY, contributes
from skypane.kernels.whive import COUNT, END, FIRST, MAX, NO_TEXTS, NOTHING
from skypane.types import BytesArray, IntArray

OLDEST: Final = 0
"""In `at`: the number of the oldest winset that may have tuples."""


class Winsets(NamedTuple):
    """The winsets of one aggregate."""

    function: int
    size: int
    advance: int
    #: keys that a winset has room for, a power of two
    room: int
    where: int
    offsets: IntArray
    data: BytesArray
    slots: int
    at: IntArray
    #: of slots: keys there are
    filled: IntArray
    #: of slots and keys, slot * room + place
    keys: IntArray
    states: IntArray
    counts: IntArray


@inlined
def place_of(winsets: Any, slot: int, key: int) -> Any:
    """Return where a key's state is in a winset; END if the table is full."""
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
    """Change a state by a tuple (processTuple)."""
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
    """Return the number of the earliest window that holds a time."""
    return (time - winsets.size) // winsets.advance + 1


@inlined
def oldest_number(winsets: Any, before: int) -> Any:
    """Return the number of the oldest winset that has tuples, or `before`: none that is older has."""
    number = winsets.at[OLDEST]
    last = min(before, number + winsets.slots)
    while number < last and winsets.filled[number % winsets.slots] == 0:
        number += 1
    return number if number < last else before


@kernel
def update_in_order(winsets: Any, times: IntArray, keys: IntArray, values: IntArray, begin: int) -> int:
    """Update windows by tuples in their order, from `begin` on; return how far it went.

    It stops at the first that comes after the end of a winset, which is to be delivered first (Update, Output); and at
    END - place, at one for whose key there is no room.
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
    """Take the oldest winset: its start, and how many keys it has; (NOTHING, 0) if no winset has any."""
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
