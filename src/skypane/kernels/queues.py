"""The usual way to merge inputs (paper 2, section 5.3): a queue for each, and a look at all of them for every tuple.

MQ's queues have a lock each. MQLF's have none: a queue has one producer and one consumer, for whom a ring with two counters
is a lock-free queue; the paper's is Michael and Scott's, which any number may use.

    tail[input]   tuples that were ever put, written by the input's thread
    head[input]   tuples that were ever taken, written by the output thread
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from skypane.kernels.atomics import load, publish, swap_if
from skypane.kernels.compiled import inlined, kernel
from skypane.types import IntArray

PAD: Final = 8
"""Words of a cache line."""
END: Final = -1


class Queues(NamedTuple):
    """The queues of all inputs, and where each column begins in their one array of words."""

    words: IntArray
    locked: bool
    inputs: int
    #: of a queue; a power of two
    room: int
    #: of inputs and places
    times: int
    payloads: int
    #: of inputs, PAD apart
    heads: int
    tails: int
    locks: int
    left: int


@inlined
def lock(queues: Any, source: int) -> None:
    """Wait until the queue is free, and take it."""
    if queues.locked:
        while not swap_if(queues.words, queues.locks + source * PAD, 0, 1):
            pass


@inlined
def unlock(queues: Any, source: int) -> None:
    """Let others have the queue."""
    if queues.locked:
        publish(queues.words, queues.locks + source * PAD, 0)


@kernel
def put_tuples(queues: Any, source: int, times: IntArray, payloads: IntArray) -> int:
    """Put an input's tuples into its queue, oldest first; return for how many there was room (Add)."""
    done = 0
    tail = load(queues.words, queues.tails + source * PAD)
    while done < times.size:
        lock(queues, source)
        full = tail - load(queues.words, queues.heads + source * PAD) == queues.room
        if not full:
            at = source * queues.room + (tail & (queues.room - 1))
            queues.words[queues.times + at], queues.words[queues.payloads + at] = times[done], payloads[done]
            tail += 1
            publish(queues.words, queues.tails + source * PAD, tail)
        unlock(queues, source)
        if full:
            break
        done += 1
    return done


@inlined
def least_queue(queues: Any) -> int:
    """Return the input whose first tuple is the oldest; END if one that has not left has none."""
    least, oldest = END, 0
    for source in range(queues.inputs):
        lock(queues, source)
        gone = load(queues.words, queues.left + source * PAD) == 1
        head = load(queues.words, queues.heads + source * PAD)
        empty = head == load(queues.words, queues.tails + source * PAD)
        if not empty:
            time = queues.words[queues.times + source * queues.room + (head & (queues.room - 1))]
            if least == END or time < oldest:
                least, oldest = source, time
        unlock(queues, source)
        if empty and not gone:
            return END
    return least


@kernel
def take_ready(queues: Any, times: IntArray, payloads: IntArray) -> int:
    """Fill the arrays with the next ready tuples, in order of time and input; return how many there were."""
    count = 0
    while count < times.size:
        source = least_queue(queues)
        if source == END:
            break
        lock(queues, source)
        head = load(queues.words, queues.heads + source * PAD)
        at = source * queues.room + (head & (queues.room - 1))
        times[count], payloads[count] = queues.words[queues.times + at], queues.words[queues.payloads + at]
        publish(queues.words, queues.heads + source * PAD, head + 1)
        unlock(queues, source)
        count += 1
    return count


@kernel
def leave_queue(queues: Any, source: int) -> None:
    """Wait for an input no longer."""
    publish(queues.words, queues.left + source * PAD, 1)


def new_queues(inputs: int, room: int, locked: bool) -> Queues:
    """Return empty queues, with room for so many tuples each, a power of two."""
    sizes = [inputs * room, inputs * room, *[inputs * PAD] * 4]
    begins = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return Queues(np.zeros(begins[-1], np.int64), locked, inputs, room, *begins[:-1])
