"""W-Hive (paper 2, section 4): many threads update the winsets of sliding windows; one takes those that are complete.

    hive = WHive(threads=2, size=30, advance=3, function="count")
    hive.update_windows(0, times, keys, values)     in thread 0; order-insensitive functions need no merge before (WiML)
    hive.get_next_winset()                          in one thread: start, keys and states of the earliest complete winset

Keys and values are integers. A call is one kernel without the GIL. Winsets lie in slots that are used again; where no slot is
free, or a winset's table of keys is full, the call says how many tuples it took, and the others are the caller's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.kernels import whive
from skypane.multiway.order import check_order
from skypane.types import BadInputError, ConfigError, IntArray, Micros

FUNCTIONS: Final = {"count": whive.COUNT, "sum": whive.SUM, "max": whive.MAX, "first": whive.FIRST}
"""What is kept for each key; `first` needs each key's tuples in one thread, and in order."""


class Winset(NamedTuple):
    """The windows of one span of time, by key."""

    start: Micros
    keys: IntArray
    states: IntArray


class WHive:
    """Winsets of windows of `size`, one every `advance`, that `threads` threads update.

    keys   for so many a winset has room
    spare  slots beyond those that the windows of one time need: how far the fastest thread may be ahead, in advances
    """

    def __init__(
        self, threads: int, *, size: int, advance: int, function: str = "count", keys: int = 1_024, spare: int = 64
    ) -> None:
        if threads < 1 or not 0 < advance <= size or keys < 1 or spare < 1:
            raise ConfigError(
                f"need threads, keys, spare >= 1 and 0 < advance <= size, got threads={threads}, size={size}, "
                f"advance={advance}, keys={keys}, spare={spare}"
            )
        if function not in FUNCTIONS:
            raise ConfigError(f"there is no function {function!r}; there are {', '.join(FUNCTIONS)}")
        room = 1 << (2 * keys - 1).bit_length()
        slots = -(-size // advance) + spare + 2
        self._hive = whive.new_hive(threads, size, advance, FUNCTIONS[function], room, slots)
        self._newest = np.full(threads, whive.NOTHING)

    def update_windows(self, thread: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        """Update the windows that tuples contribute to, oldest first; return for how many there was room.

        BadInputError, naming thread and tuple, where time goes backwards: then none of them counts.
        """
        times, keys, values = (np.ascontiguousarray(column, np.int64) for column in (times, keys, values))
        check_order(f"thread {thread}", self._newest[thread], times)
        if (keys == whive.NOTHING).any() or (values == whive.NOTHING).any():
            raise BadInputError(f"{whive.NOTHING} is neither a key nor a value here: it stands for none")
        done = whive.update_all(self._hive, thread, times, keys, values)
        if done:
            self._newest[thread] = times[done - 1]
        return done

    def finish(self, thread: int) -> None:
        """Say that a thread has no tuples any more."""
        whive.finish(self._hive, thread)

    def get_next_winset(self) -> Winset | None:
        """Return the earliest winset to which no tuple contributes any more, once; None if there is none yet."""
        keys, states = (np.empty(self._hive.room, np.int64) for _ in range(2))
        start, count = whive.get_next_winset(self._hive, keys, states)
        return None if start == whive.NOTHING else Winset(start, keys[:count], states[:count])


__all__ = ["FUNCTIONS", "WHive", "Winset"]
