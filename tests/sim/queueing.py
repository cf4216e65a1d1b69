"""One queue, several servers, first come first served: the farm whose waiting times queueing theory knows."""

from __future__ import annotations

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.runtime.sim.heap import EventHeap, empty_heap, pop, push
from skypane.types import FloatArray


@kernel
def _run(arrival: FloatArray, service: FloatArray, servers: int, heap: EventHeap, waits: FloatArray) -> None:
    """Serve in order of arrival: an event is the end of a service; the backlog is the run of tuples from `head`."""
    time, sequence, item, use = heap
    head = 0
    free = servers
    tuples = arrival.shape[0]
    coming = 0
    while head < tuples:
        arriving = arrival[coming] if coming < tuples else np.inf
        if use[0] > 0 and time[0] <= arriving:
            now = time[0]
            pop(time, sequence, item, use)
            free += 1
        else:
            now = arriving
            coming += 1
        if free > 0 and head < coming:
            waits[head] = now - arrival[head]
            push(time, sequence, item, use, now + service[head], head)
            head += 1
            free -= 1


def waiting_times(arrival: FloatArray, service: FloatArray, servers: int) -> FloatArray:
    """Return how long each tuple waits; arrival times ascend; service times in the same unit; both (n,)."""
    heap = empty_heap(servers + 1)
    waits = np.zeros(len(arrival))
    _run(np.asarray(arrival, np.float64), np.asarray(service, np.float64), servers, heap, waits)
    return waits
