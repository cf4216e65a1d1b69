"""W-Hive (paper 2, section 4): many threads update the winsets of sliding windows; one takes the complete winsets.

    hive = WHive(2, Aggregation(size=30, advance=3, function="count"))
    hive.update_windows(0, times, keys, values)     in thread 0; order-insensitive functions need no merge (WiML)
    hive.get_next_winset()                          in one thread: the earliest complete winset

Keys and values are integers. A call is one kernel without the GIL. Winsets use reusable slots. If no slot is free or a
winset's table of keys is full, the call returns how many tuples it has accepted, and the caller keeps the others.
"""

from __future__ import annotations

import numpy as np

from skypane.types import BadInputError, ConfigError, IntArray, Micros
from skypane_papers.multiway.aggregation import Aggregation, Winset
from skypane_papers.multiway.kernels import whive
from skypane_papers.multiway.order import check_order


class WHive:
    """Winsets of an aggregation, updated by `threads` threads.

    spare  slots beyond those for the windows of one time, by which the fastest thread may be ahead, in advances
    """

    def __init__(self, threads: int, aggregation: Aggregation, *, spare: int = 64) -> None:
        if threads < 1 or spare < 1:
            raise ConfigError(f"threads and spare must be at least 1, got threads={threads}, spare={spare}")
        self.aggregation = aggregation
        size, advance = aggregation.size, aggregation.advance
        slots = -(-size // advance) + whive.KEPT + spare
        self._hive = whive.new_hive(
            threads, size, advance, aggregation.code, aggregation.room, slots, *aggregation.condition
        )
        self._newest = np.full(threads, whive.NOTHING)

    def update_windows(self, thread: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        """Update the windows of tuples, oldest first; return how many tuples were accepted.

        Raise BadInputError, which names the thread and the tuple, and accept none if time goes backwards.
        """
        times, keys, values = (np.ascontiguousarray(column, np.int64) for column in (times, keys, values))
        check_order(f"thread {thread}", self._newest[thread], times)
        if (keys == whive.NOTHING).any() or (values == whive.NOTHING).any():
            raise BadInputError(f"keys and values must not be {whive.NOTHING}, which is reserved")
        done = whive.update_all(self._hive, thread, times, keys, values)
        if done:
            self._newest[thread] = times[done - 1]
        return done

    def pass_time(self, thread: int, time: Micros) -> None:
        """Report that a thread has no more tuples before `time`."""
        whive.pass_time(self._hive, thread, time)

    def finish(self, thread: int) -> None:
        """Report that a thread has no more tuples."""
        whive.finish(self._hive, thread)

    def get_next_winset(self) -> Winset | None:
        """Return the earliest complete winset that was not returned before; None if there is none yet."""
        columns = [np.empty(self._hive.room, np.int64) for _ in range(3)]
        start, count = whive.get_next_winset(self._hive, *columns)
        return (
            None if start == whive.NOTHING else self.aggregation.winset(start, *(column[:count] for column in columns))
        )


__all__ = ["WHive"]
