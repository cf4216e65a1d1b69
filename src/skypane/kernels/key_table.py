"""A hash table with open addressing that numbers keys of a few words in the order of their first occurrence.

slots   numbers of keys, -1 in a free slot; a power of two of slots, more than there are keys
known   (room, w): the words of each key; key number i is row i
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skypane.kernels.column_layout import frozen
from skypane.kernels.compiled import inlined, kernel
from skypane.types import IntArray

_LEAST = 1_024


@inlined
def is_key(known: Any, number: int, keys: Any, row: int) -> bool:
    """Return whether `number` is the number of keys[row]."""
    same = True
    for column in range(keys.shape[1]):
        same &= known[number, column] == keys[row, column]
    return same


@inlined
def slot_of(slots: Any, known: Any, keys: Any, row: int) -> int:
    """Return the slot that holds a key, or the free slot for it.

    The first probe is the first word itself, so that consecutive integers do not collide. After a collision, linear
    probing starts at a hash of all words.
    """
    mask = slots.size - 1
    slot: int = keys[row, 0] & mask
    if slots[slot] >= 0 and not is_key(known, slots[slot], keys, row):
        word = np.uint64(0)
        for column in range(keys.shape[1]):
            word = (word ^ np.uint64(keys[row, column])) * np.uint64(0x9E3779B97F4A7C15)
            word ^= word >> np.uint64(32)
        slot = np.int64(word) & mask
        while slots[slot] >= 0 and not is_key(known, slots[slot], keys, row):
            slot = (slot + 1) & mask
    return slot


@kernel
def number_keys(slots: Any, known: Any, count: int, keys: IntArray) -> tuple[IntArray, int]:
    """Return the number of each key of `keys` (n, w), and the count of known keys afterwards.

    `count` keys are known before; new keys get the next numbers. `known` must have room for count + n keys, and `slots`
    must have at least twice as many slots.
    """
    ids = np.empty(keys.shape[0], np.int64)
    for row in range(ids.size):
        slot = slot_of(slots, known, keys, row)
        if slots[slot] < 0:
            slots[slot] = count
            known[count] = keys[row]
            count += 1
        ids[row] = slots[slot]
    return ids, count


class KeyTable:
    """Keys of `width` words, numbered from 0 in the order of their first occurrence."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self._slots = np.full(_LEAST, -1, np.int32)
        self._known = np.empty((0, width), np.int64)

    @property
    def keys(self) -> IntArray:
        """The keys by number, (count, width)."""
        return self._known[: self.count]

    def of(self, keys: IntArray) -> IntArray:
        """Return the number of each key of `keys` (n, width); new keys get the next numbers."""
        needed = self.count + len(keys)
        if needed > len(self._known):
            room = np.empty((2 * needed, self._known.shape[1]), np.int64)
            room[: self.count] = self.keys
            self._known = room
        if 2 * needed > len(self._slots):
            self._slots = np.full(1 << (2 * needed).bit_length(), -1, np.int32)
            number_keys(self._slots, self._known, 0, frozen(self.keys.copy()))
        ids, self.count = number_keys(self._slots, self._known, self.count, frozen(np.ascontiguousarray(keys)))
        return ids
