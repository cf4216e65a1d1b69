"""T-Gate (paper 2, section 4): many threads insert tuples, each of its own input; consumers take the ready tuples.

    gate = TGate(inputs=2)
    gate.insert_tuples(0, times, payloads)      in the thread of input 0
    gate.insert_tuple(1, 7, 99)                 in the thread of input 1
    gate.get_next_ready_tuple()                 in a consumer's thread: (time, input, payload), or None

At most one thread per input and one per consumer may call at a time; different inputs and consumers may run
concurrently. A call is one kernel without the GIL (kernels/tgate.py draws the list and its steps). Memory is an arena of
reusable segments. If an input's part of it is full, the call returns how many tuples it has accepted, and the caller
offers the others again after consumers have taken some.

Order of tuples of one time: with Ready.IN_ORDER they are ordered by (time, input, sequence), independently of the
threads; with the paper's rules they are in the order in which they were linked. Under the paper's rules all tuples of
one time must fit into the arena, because nodes without an order among them cannot be freed separately.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.multiway.ready_merge import Ready
from skypane.types import BadInputError, ConfigError, IntArray, Micros
from skypane_papers.multiway.kernels import tgate
from skypane_papers.multiway.order import backwards

_RULES: Final = {
    Ready.IN_ORDER: tgate.IN_ORDER,
    Ready.DEFINITION_1: tgate.DEFINITION_1,
    Ready.LAST_HELD: tgate.LAST_HELD,
}
_LEAST_RING: Final = 3


class ReadyTuples(NamedTuple):
    """Tuples in order, as columns."""

    times: IntArray
    inputs: IntArray
    payloads: IntArray


class TGate:
    """A gate for `inputs` inputs, which waits for all of them from the start.

    later      maximum number of inputs that may join later
    consumers  number of consumers, each of which gets every tuple
    room       maximum number of waiting tuples per input, rounded up to whole segments of the arena
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
                f"inputs, consumers, room and segment must be at least 1, got inputs={inputs}, consumers={consumers}, "
                f"room={room}, segment={segment}"
            )
        self.inputs = inputs
        self.consumers = consumers
        ring = max(_LEAST_RING, -(-room // segment) + 1)
        self._most = inputs + later
        self._gate = tgate.new_gate(self._most, consumers, ring, segment, _RULES[ready], later)
        self._left = [False] * self._most

    def insert_tuple(self, source: int, time: Micros, payload: int) -> bool:
        """Insert a tuple of an input; return False if there is no room for it now."""
        return self.insert_tuples(source, np.array([time]), np.array([payload])) == 1

    def insert_tuples(self, source: int, times: IntArray, payloads: IntArray) -> int:
        """Insert an input's tuples, oldest first; return how many were accepted. The caller keeps the rest.

        Raise BadInputError, which names the input and the tuple, and insert none if time goes backwards.
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
        """Return the consumer's next ready tuple as (time, input, payload); None if there is none."""
        found = self.get_ready_tuples(1, consumer)
        return (int(found.times[0]), int(found.inputs[0]), int(found.payloads[0])) if len(found.times) else None

    def get_ready_tuples(self, most: int, consumer: int = 0) -> ReadyTuples:
        """Return up to `most` ready tuples in order."""
        if not 0 <= consumer < self.consumers:
            raise BadInputError(f"consumer must be 0 to {self.consumers - 1}, got {consumer}")
        columns = [np.empty(most, np.int64) for _ in range(3)]
        count = tgate.get_ready_tuples(self._gate, consumer, *columns)
        return ReadyTuples(*(column[:count] for column in columns))

    def join(self) -> int:
        """Add an input and wait for it from now on; return its number. One thread at a time may call this.

        Tuples of the input that are older than those taken by consumers raise BadInputError, as when time goes
        backwards.
        """
        if self.inputs == self._most:
            raise ConfigError(f"later is too small; the gate has room for {self._most} inputs only")
        tgate.join_gate(self._gate, self.inputs)
        self.inputs += 1
        return self.inputs - 1

    def leave(self, source: int) -> None:
        """Stop waiting for this input; all of its tuples are still merged. Call this in the input's thread."""
        self._check(source)
        self._left[source] = True
        tgate.leave_gate(self._gate, source)

    def _check(self, source: int) -> None:
        if not 0 <= source < self.inputs:
            raise BadInputError(f"input must be 0 to {self.inputs - 1}, got {source}")
        if self._left[source]:
            raise BadInputError(f"input {source} has left and may not send again")


class SkipList(TGate):
    """The same list for comparison (paper 2, section 7.2); its consumer checks every input for every tuple.

    A tuple is ready by definition 1.
    """

    def __init__(self, inputs: int, *, room: int = 4_096) -> None:
        super().__init__(inputs, room=room)
        self._gate = self._gate._replace(rule=tgate.ASKED)


__all__ = ["ReadyTuples", "SkipList", "TGate"]
