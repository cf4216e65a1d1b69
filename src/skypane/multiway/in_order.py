"""MQ, MQLF and TuMLSC: one thread updates windows, by tuples that come to it merged into one order (paper 2, algorithms 2, 3)."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from skypane.kernels import queues, winsets
from skypane.kernels.whive import NOTHING
from skypane.multiway.aggregation import Aggregation, Winset
from skypane.multiway.design import Multiway, packed, unpacked
from skypane.multiway.tgate import TGate
from skypane.types import ConfigError, IntArray

_TAKEN = 4_096
"""Ready tuples that the output thread takes at a time."""


class InOrder(Multiway):
    """The stages Update and Output of the thread that takes ready tuples."""

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
        """Update windows by ready tuples until one is complete; return that."""
        while True:
            if self._done == len(self._times):
                ended = all(self._left)  # asked before: an input may send and leave meanwhile
                self._times, payloads = self._ready()
                self._keys, self._values = unpacked(payloads)
                self._done = 0
                if not len(self._times):
                    return self._delivered() if ended else None
            done = winsets.update_in_order(self._winsets, self._times, self._keys, self._values, self._done)
            if done < 0:
                raise ConfigError(
                    f"a window has more than {self.aggregation.room} keys; say how many it may have, keys="
                )
            self._done = done
            if done < len(self._times):
                return self._delivered()

    def _delivered(self) -> Winset | None:
        start, count = winsets.deliver(self._winsets, *self._columns)
        if start == NOTHING:
            return None
        return self.aggregation.winset(start, *(column[:count].copy() for column in self._columns))


class MQLF(InOrder):
    """A queue for each input, without locks; the output thread looks at all heads for each tuple.

    room  tuples of an input that may wait, rounded up to a power of two
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
    """The same, with a lock for each queue: what stream engines did."""

    locked = True


class TuMLSC(InOrder):
    """Tuple merged list, single consumer: inputs merge their tuples themselves, in a T-Gate."""

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
