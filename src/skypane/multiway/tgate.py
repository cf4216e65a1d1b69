"""T-Gate (paper 2, section 4): many threads insert tuples, each of its own input; consumers take those that are ready.

    gate = TGate(inputs=2)
    gate.insert_tuples(0, times, payloads)      in input 0's thread
    gate.insert_tuple(1, 7, 99)                 in input 1's
    gate.get_next_ready_tuple()                 in a consumer's: (time, input, payload), or None

One thread per input and one per consumer at a time; beyond that all may go on together. A call is one kernel without the
GIL. Memory is an arena whose segments are used again; where an input's part of it is full, the call says so, and the tuples
are the caller's to offer again once consumers have taken some: nothing is lost, and nothing waits in here.

Tuples of one time: with Ready.IN_ORDER they come out by (time, input, sequence), whatever the threads do; by the paper's
rules in the order in which they were linked. Under those rules, tuples of one single time must fit into the arena: nodes
among which there is no order cannot be freed one before the other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.kernels import tgate
from skypane.multiway.order import backwards
from skypane.multiway.ready_merge import Ready
from skypane.types import BadInputError, ConfigError, IntArray, Micros

_RULES: Final = {
    Ready.IN_ORDER: tgate.IN_ORDER,
    Ready.DEFINITION_1: tgate.DEFINITION_1,
    Ready.LAST_HELD: tgate.LAST_HELD,
}
_LEAST_RING: Final = 3


class ReadyTuples(NamedTuple):
    """Tuples in their order, as columns."""

    times: IntArray
    inputs: IntArray
    payloads: IntArray


class TGate:
    """A gate for `inputs` inputs, all of which are waited for from the beginning.

    later      how many more may join
    consumers  each gets every tuple
    room       tuples of one input that may wait, rounded up to whole segments of the arena
    """

    def __init__(
        self,
        inputs: int,
        *,
        later: int = 0,
        consumers: int = 1,
        ready: Ready = Ready.IN_ORDER,
        room: int = 4_096,
        segment: int = 256,
    ) -> None:
        if min(inputs, consumers, room, segment) < 1:
            raise ConfigError(
                f"need at least one input, consumer and tuple of room, got inputs={inputs}, consumers={consumers}, "
                f"room={room}, segment={segment}"
            )
        self.inputs = inputs
        self.consumers = consumers
        ring = max(_LEAST_RING, -(-room // segment) + 1)
        self._most = inputs + later
        self._gate = tgate.new_gate(self._most, consumers, ring, segment, _RULES[ready], later)
        self._left = [False] * self._most

    def insert_tuple(self, source: int, time: Micros, payload: int) -> bool:
        """Insert a tuple of an input; False if there is no room for it now."""
        return self.insert_tuples(source, np.array([time]), np.array([payload])) == 1

    def insert_tuples(self, source: int, times: IntArray, payloads: IntArray) -> int:
        """Insert an input's tuples, oldest first; return how many there was room for, the others are the caller's.

        BadInputError, naming input and tuple, where time goes backwards: then none of them is inserted.
        """
        self._check(source)
        times = np.ascontiguousarray(times, np.int64)
        done = tgate.insert_tuples(self._gate, source, times, np.ascontiguousarray(payloads, np.int64))
        if done < 0:
            at = -1 - done
            before = times[at - 1] if at else tgate.newest_time(self._gate, source)
            raise backwards(f"input {source}", at, times[at], before)
        return done

    def get_next_ready_tuple(self, consumer: int = 0) -> tuple[Micros, int, int] | None:
        """Return the earliest tuple that is ready and that this consumer has not had: (time, input, payload)."""
        found = self.get_ready_tuples(1, consumer)
        return (int(found.times[0]), int(found.inputs[0]), int(found.payloads[0])) if len(found.times) else None

    def get_ready_tuples(self, most: int, consumer: int = 0) -> ReadyTuples:
        """Return up to so many ready tuples at once, in order."""
        if not 0 <= consumer < self.consumers:
            raise BadInputError(f"consumers are numbered from 0 to {self.consumers - 1}, got {consumer}")
        columns = [np.empty(most, np.int64) for _ in range(3)]
        count = tgate.get_ready_tuples(self._gate, consumer, *columns)
        return ReadyTuples(*(column[:count] for column in columns))

    def join(self) -> int:
        """Wait for one input more from now on; return its number. One thread at a time may call this.

        Its tuples may not be older than what consumers have taken by now: that is an error, as for time that goes backwards.
        """
        if self.inputs == self._most:
            raise ConfigError(f"there is room for {self._most} inputs only: say how many may join, later=")
        tgate.join_gate(self._gate, self.inputs)
        self.inputs += 1
        return self.inputs - 1

    def leave(self, source: int) -> None:
        """Wait for this input no longer: what it has sent is merged, its last tuple too. Called in its thread."""
        self._check(source)
        self._left[source] = True
        tgate.leave_gate(self._gate, source)

    def _check(self, source: int) -> None:
        if not 0 <= source < self.inputs:
            raise BadInputError(f"inputs are numbered from 0 to {self.inputs - 1}, got {source}")
        if self._left[source]:
            raise BadInputError(f"input {source} has left: it may not send again")


class SkipList(TGate):
    """For comparison (paper 2, section 7.2): the same list, whose consumer has to ask every input about every tuple.

    A tuple is ready by definition 1.
    """

    def __init__(self, inputs: int, *, room: int = 4_096) -> None:
        super().__init__(inputs, room=room)
        self._gate = self._gate._replace(rule=tgate.ASKED)


__all__ = ["ReadyTuples", "SkipList", "TGate"]
