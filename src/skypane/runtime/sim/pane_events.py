"""The pane-level farm in virtual time: an emitter sends tuples to the queues of PLQ workers, which send results.

One loop handles two kinds of event: a tuple arrives, or a worker finishes one. farm_state.py declares and allocates the
state of the farm; tests/sim/plain.py implements the same farm in plain Python.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.runtime.sim.farm_state import ARRIVED, CLOSED, CONTROLS, DROPPED, RESULTS, TURN, FarmState
from skypane.runtime.sim.heap import pop, push, replace_first
from skypane.runtime.sim.partition import inserted
from skypane.types import FloatArray, IntArray

PB_RR: Final = 0
TB_RR: Final = 1
THRESHOLD: Final = 2


@kernel
def least_loaded(load: IntArray, workers: int, pane: int) -> int:
    """Return the LLW; among equals, the first one from pane % workers on (control/splitting/loads.py)."""
    found = pane % workers
    for step in range(1, workers):
        worker = (pane + step) % workers
        if load[worker] < load[found]:
            found = worker
    return found


@kernel
def _hold(farm: FarmState, pane: int, worker: int) -> None:
    """Open a partition of a pane at a worker."""
    farm.partitions.holds[pane, worker] = True
    farm.panes.parts[pane] += 1


@kernel
def _emit(farm: FarmState, now: float, worker: int, item: int) -> None:
    """Send the result of a partition, whose control message has reached the head of its queue."""
    partitions, results = farm.partitions, farm.results
    code = farm.queues.control[item - farm.tuples.arrival.shape[0]]
    pane = code if code >= 0 else ~code
    at = farm.counts[RESULTS]
    farm.counts[RESULTS] += 1
    results.time[at] = now
    results.pane[at] = pane
    results.worker[at] = worker
    results.tuples[at] = partitions.taken[pane, worker]
    results.counter[at] = farm.panes.parts[pane] if code >= 0 else 0
    results.rows[at] = partitions.level[pane, worker]
    results.head[at] = partitions.head[pane, worker]
    partitions.head[pane, worker] = -1
    partitions.level[pane, worker] = 0
    partitions.taken[pane, worker] = 0


@kernel
def _pass_on(farm: FarmState, now: float, worker: int) -> None:
    """Process the control messages at the head of a queue; they take no time."""
    first, after, tuples = farm.queues.first, farm.queues.after, farm.tuples.arrival.shape[0]
    while first[worker] >= tuples:
        item = first[worker]
        _emit(farm, now, worker, item)
        first[worker] = after[item]


@kernel
def _send_control(farm: FarmState, now: float, worker: int, code: int) -> None:
    queues, at = farm.queues, farm.counts[CONTROLS]
    item = farm.tuples.arrival.shape[0] + at
    farm.counts[CONTROLS] += 1
    queues.control[at] = code
    queues.after[item] = -1
    if queues.first[worker] >= 0:
        queues.after[queues.last[worker]] = item
    else:
        queues.first[worker] = item
    queues.last[worker] = item
    _pass_on(farm, now, worker)


@kernel
def close_next(farm: FarmState, now: float, workers: int) -> None:
    """Close the first open pane by control messages to its holders; without tuples, it is opened at the LLW first."""
    pane, holds = farm.counts[CLOSED], farm.partitions.holds
    farm.counts[CLOSED] += 1
    if farm.panes.parts[pane] == 0:
        _hold(farm, pane, least_loaded(farm.queues.load, workers, pane))
    for worker in range(holds.shape[1]):
        if holds[pane, worker]:
            _send_control(farm, now, worker, pane)


@inlined
def _add_rest(began: FloatArray, busy: FloatArray, first: IntArray, until: float) -> None:
    """Count the part of each running service before `until` as busy."""
    for worker in range(first.shape[0]):
        if first[worker] >= 0:
            busy[worker] += until - began[worker]
            began[worker] = until


@kernel
def advance(  # noqa: C901, PLR0912, PLR0915 - one loop, see below
    farm: FarmState, until: float, policy: int, theta: float, workers: int, room: int
) -> None:
    """Process all events up to the time `until`; services count as busy up to it.

    An infinite `until` stands for the time at which the last tuple is sent. A queue has room for `room` tuples,
    including the one being served. A tuple for a full queue waits, as do all tuples behind it; whenever a service ends,
    its worker is chosen again.

    The arrays of the loop are local variables, since taking one out of the farm costs as much as an event, as does a
    call with the farm: steps of the loop in functions, even inlined, made it 1.1 to 1.6 times slower.
    """
    arrival, work, pane_of, points = farm.tuples
    closing, owner, _, computed = farm.panes
    began, busy, done, sent = farm.workers
    first, last, load, after, _ = farm.queues
    holds, to, taken, level, head, behind = farm.partitions
    time, sequence, item_of, use = farm.heap
    cost, count, clock = farm.cost, farm.counts, farm.clock
    tuples, most, exact = arrival.shape[0], cost.shape[0] - 1, points.shape[0] > 0
    while True:
        item = count[ARRIVED]
        if item == tuples and until == np.inf:
            break
        arriving = max(arrival[item], clock[0]) if item < tuples else np.inf
        if use[0] > 0 and time[0] <= min(arriving, until):
            # A worker finishes a tuple and starts the next one of its queue.
            now = time[0]
            worker = item_of[0]
            item = first[worker]
            busy[worker] += now - began[worker]
            began[worker] = now
            pane = pane_of[item]
            taken[pane, worker] += 1
            if exact:
                head[pane, worker], grown = inserted(points, behind, head[pane, worker], item)
                level[pane, worker] += grown
            computed[pane] = now
            done[worker] += 1
            load[worker] -= 1
            item = after[item]
            first[worker] = item
            if item >= tuples:
                _pass_on(farm, now, worker)
                item = first[worker]
            if item >= 0:
                end = now + cost[min(level[pane_of[item], worker], most)] * work[item]
                replace_first(time, sequence, item_of, use, end, worker)
            else:
                pop(time, sequence, item_of, use)
        elif arriving <= until:
            # A tuple arrives: close the panes that it completes, then send it to a worker.
            while count[CLOSED] < closing.shape[0] and closing[count[CLOSED]] <= item:
                close_next(farm, arriving, workers)
            pane = pane_of[item]
            if pane < count[CLOSED]:
                count[DROPPED] += 1
                count[ARRIVED] += 1
                clock[0] = arriving
                continue
            if policy == PB_RR:
                worker = pane % workers
            elif policy == TB_RR:
                worker = count[TURN] % workers
            else:  # Algorithm 1
                worker = owner[pane]
                if worker < 0 or to[pane, worker] >= theta:
                    worker = least_loaded(load, workers, pane)
            if load[worker] >= room:
                clock[0] = time[0]
                continue
            clock[0] = arriving
            count[ARRIVED] += 1
            count[TURN] += 1
            owner[pane] = worker
            if not holds[pane, worker]:
                _hold(farm, pane, worker)
            to[pane, worker] += 1
            sent[worker] += 1
            load[worker] += 1
            after[item] = -1
            if first[worker] >= 0:
                after[last[worker]] = item
            else:
                first[worker] = item
                began[worker] = arriving
                end = arriving + cost[min(level[pane, worker], most)] * work[item]
                push(time, sequence, item_of, use, end, worker)
            last[worker] = item
        else:
            break
    _add_rest(began, busy, first, clock[0] if until == np.inf else until)


@kernel
def turn_off(farm: FarmState, now: float, before: int, workers: int) -> None:
    """Turn off the workers from `workers` up to `before` (paper 5, Algorithm 4).

    They close their partitions by force. A pane whose owner is turned off is assigned to the LLW, which opens an EMPTY
    partition of it if it has none.
    """
    owner, holds, to = farm.panes.owner, farm.partitions.holds, farm.partitions.to
    still_open = range(farm.counts[CLOSED], owner.shape[0])
    for worker in range(workers, before):
        for pane in still_open:
            if holds[pane, worker]:
                holds[pane, worker] = False
                to[pane, worker] = 0
                _send_control(farm, now, worker, ~pane)
    for pane in still_open:
        if owner[pane] >= workers:
            owner[pane] = least_loaded(farm.queues.load, workers, pane)
            if not holds[pane, owner[pane]]:
                _hold(farm, pane, owner[pane])
