"""The usual way to merge inputs (paper 2, section 5.3): one queue per input, all of which are compared for every tuple.

MQ's queues have one lock each. MQLF's have none: with one producer and one consumer, a ring with two counters is a
lock-free queue. The paper uses that of Michael and Scott, which supports any number of threads.

    tail[input]   number of tuples put so far, written by the input's thread
    head[input]   number of tuples taken so far, written by the output thread
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.types import IntArray
from skypane_papers.multiway.kernels.atomics import load, publish, swap_if

PAD: Final = 8
"""Words of a cache line."""
END: Final = -1


class Queues(NamedTuple):
    """The queues of all inputs: one array of words, and the offset of each column in it."""

    words: IntArray
    locked: bool
    inputs: int
    #: capacity of a queue, a power of two
    room: int
    #: by input and place
    times: int
    payloads: int
    #: by input, PAD apart
    heads: int
    tails: int
    locks: int
    left: int


@inlined
def lock(queues: Any, source: int) -> None:
    """Acquire the lock of a queue, if queues have locks."""
    if queues.locked:
        while not swap_if(queues.words, queues.locks + source * PAD, 0, 1):
            pass


@inlined
def unlock(queues: Any, source: int) -> None:
    """Release the lock of a queue."""
    if queues.locked:
        publish(queues.words, queues.locks + source * PAD, 0)


@kernel
def put_tuples(queues: Any, source: int, times: IntArray, payloads: IntArray) -> int:
    """Put an input's tuples into its queue, oldest first; return how many were accepted (Add)."""
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
    """Return the input with the oldest first tuple; END if an input that has not left has no tuple."""
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
    """Fill the arrays with the next ready tuples, in order of time and input; return their number."""
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
    """Stop waiting for an input."""
    publish(queues.words, queues.left + source * PAD, 1)


def new_queues(inputs: int, room: int, locked: bool) -> Queues:
    """Return empty queues with a capacity of `room` tuples each, a power of two."""
    sizes = [inputs * room, inputs * room, *[inputs * PAD] * 4]
    begins = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return Queues(np.zeros(begins[-1], np.int64), locked, inputs, room, *begins[:-1])
