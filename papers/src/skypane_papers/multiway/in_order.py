"""MQ, MQLF and TuMLSC: one thread updates windows with merged tuples (paper 2, algorithms 2 and 3)."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from skypane.types import ConfigError, IntArray
from skypane_papers.multiway.aggregation import Aggregation, Winset
from skypane_papers.multiway.design import Multiway, packed, unpacked
from skypane_papers.multiway.kernels import queues, winsets
from skypane_papers.multiway.kernels.whive import NOTHING
from skypane_papers.multiway.tgate import TGate

_TAKEN = 4_096
"""Maximum number of ready tuples that the output thread takes at a time."""


class InOrder(Multiway):
    """The stages Update and Output of the thread that takes the ready tuples."""

    def __init__(self, inputs: int, aggregation: Aggregation) -> None:
        super().__init__(inputs, aggregation)
        self._winsets = winsets.new_winsets(
            aggregation.size, aggregation.advance, aggregation.code, aggregation.room, *aggregation.condition
        )
        self._columns = [np.empty(aggregation.room, np.int64) for _ in range(3)]
        self._times = self._keys = self._values = np.empty(0, np.int64)
        self._done = 0

    @abstractmethod
    def _ready(self) -> tuple[IntArray, IntArray]:
        """Return the times and payloads of the next ready tuples, in order."""

    def next_winset(self) -> Winset | None:
        """Update windows with ready tuples until one is complete; return it."""
        while True:
            if self._done == len(self._times):
                ended = all(self._left)  # read first, as an input may send and leave meanwhile
                self._times, payloads = self._ready()
                self._keys, self._values = unpacked(payloads)
                self._done = 0
                if not len(self._times):
                    return self._delivered() if ended else None
            done = winsets.update_in_order(self._winsets, self._times, self._keys, self._values, self._done)
            if done < 0:
                raise ConfigError(f"keys is too small; a window has more than {self.aggregation.room} keys")
            self._done = done
            if done < len(self._times):
                return self._delivered()

    def _delivered(self) -> Winset | None:
        start, count = winsets.deliver(self._winsets, *self._columns)
        if start == NOTHING:
            return None
        return self.aggregation.winset(start, *(column[:count].copy() for column in self._columns))


class MQLF(InOrder):
    """One queue per input, without locks; the output thread compares all heads for each tuple.

    room  maximum number of waiting tuples per input, rounded up to a power of two
    """

    locked = False

    def __init__(self, inputs: int, aggregation: Aggregation, *, room: int = 4_096) -> None:
        super().__init__(inputs, aggregation)
        self._queues = queues.new_queues(inputs, 1 << (room - 1).bit_length(), self.locked)

    def _add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        return queues.put_tuples(self._queues, source, times, packed(keys, values))

    def _leave(self, source: int) -> None:
        queues.leave_queue(self._queues, source)

    def _ready(self) -> tuple[IntArray, IntArray]:
        times, payloads = np.empty(_TAKEN, np.int64), np.empty(_TAKEN, np.int64)
        count = queues.take_ready(self._queues, times, payloads)
        return times[:count], payloads[:count]


class MQ(MQLF):
    """MQLF with one lock per queue, as in earlier stream engines."""

    locked = True


class TuMLSC(InOrder):
    """Tuple merged list, single consumer: the inputs merge their tuples in a T-Gate."""

    def __init__(self, inputs: int, aggregation: Aggregation, *, room: int = 4_096) -> None:
        super().__init__(inputs, aggregation)
        self._gate = TGate(inputs, room=room)

    def _add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        return self._gate.insert_tuples(source, times, packed(keys, values))

    def _leave(self, source: int) -> None:
        self._gate.leave(source)

    def _ready(self) -> tuple[IntArray, IntArray]:
        ready = self._gate.get_ready_tuples(_TAKEN)
        return ready.times, ready.payloads
