"""W-Hive (paper 2, section 4): many threads update the winsets of sliding windows; one takes those that are complete.

    hive = WHive(2, Aggregation(size=30, advance=3, function="count"))
    hive.update_windows(0, times, keys, values)     in thread 0; order-insensitive functions need no merge before (WiML)
    hive.get_next_winset()                          in one thread: start, keys and states of the earliest complete winset

Keys and values are integers. A call is one kernel without the GIL. Winsets lie in slots that are used again; where no slot is
free, or a winset's table of keys is full, the call says how many tuples it took, and the others are the caller's.
"""

from __future__ import annotations

import numpy as np

from skypane.kernels import whive
from skypane.multiway.aggregation import Aggregation, Winset
from skypane.multiway.order import check_order
from skypane.types import BadInputError, ConfigError, IntArray, Micros


class WHive:
    """Winsets of an aggregation that `threads` threads update.

    spare  slots beyond those that the windows of one time need: how far the fastest thread may be ahead, in advances
    """

    def __init__(self, threads: int, aggregation: Aggregation, *, spare: int = 64) -> None:
        if threads < 1 or spare < 1:
            raise ConfigError(f"need threads, spare >= 1, got threads={threads}, spare={spare}")
        self.aggregation = aggregation
        size, advance = aggregation.size, aggregation.advance
        slots = -(-size // advance) + whive.KEPT + spare
        self._hive = whive.new_hive(
            threads, size, advance, aggregation.code, aggregation.room, slots, *aggregation.condition
        )
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

    def pass_time(self, thread: int, time: Micros) -> None:
        """Say that a thread has no tuples before `time` any more."""
        whive.pass_time(self._hive, thread, time)

    def finish(self, thread: int) -> None:
        """Say that a thread has no tuples any more."""
        whive.finish(self._hive, thread)

    def get_next_winset(self) -> Winset | None:
        """Return the earliest winset to which no tuple contributes any more, once; None if there is none yet."""
        columns = [np.empty(self._hive.room, np.int64) for _ in range(3)]
        start, count = whive.get_next_winset(self._hive, *columns)
        return (
            None if start == whive.NOTHING else self.aggregation.winset(start, *(column[:count] for column in columns))
        )


__all__ = ["WHive"]
