"""The pane-level farm in virtual time: an emitter sends tuples to the queues of PLQ workers, which send results.

One loop handles two kinds of event: a tuple arrives, or a worker finishes one. The whole state of the farm is in
arrays, which farm_arrays.py allocates; tests/sim/plain.py implements the same farm in plain Python.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.runtime.sim.heap import EventHeap, pop, push, replace_first
from skypane.runtime.sim.partition import inserted
from skypane.types import BoolArray, FloatArray, IntArray

PB_RR: Final = 0
TB_RR: Final = 1
THRESHOLD: Final = 2

ARRIVED, CLOSED, CONTROLS, RESULTS, DROPPED, TURN = range(6)
"""Indices into `FarmState.counts`: tuples arrived, panes closed, control messages, results, drops, TB_RR's position."""


class FarmState(NamedTuple):
    """The state of a farm: the stream (N tuples, P panes), the workers (W), queues, partitions and results.

    arrival, work     (N,) arrival of each tuple in seconds; factor by which its service is longer than usual
    pane              (N,) its pane
    closing           (P,) index of the tuple on whose arrival the pane is closed; N: not within the stream
    cost              (K,) seconds of a tuple in a partition with k tuples before it; the last value holds beyond
    first, last       (W,) items at the ends of each queue, -1 for none; `first` is being served
    load              (W,) tuples in each queue, including the one being served
    began             (W,) time at which the service, or its part in this interval, began
    busy, done, sent  (W,) phi, q and lambda of this interval
    after             (N + C,) the next item in the queue of each item: tuples, then C control messages
    control           (C,) pane to close; ~pane: closed by force
    to, taken         (P, W) tuples sent to, and processed in, each partition
    holds             (P, W) whether a worker has, or will have, the partition
    owner, parts      (P,) the owner, -1 for none; number of partitions so far
    computed          (P,) time at which the latest tuple was processed
    points            (N, d) values of the tuples if results are exact, else (0, 0)
    level             (P, W) index into `cost`: rows in the partition's result if results are exact, else `taken`
    head, behind      (P, W), (N,) the exact results, see partition.py
    result_*          for each partition result: time, pane, worker, tuples, partition counter; rows and first row if
                      results are exact
    clock             (1,) time at which the last tuple was sent, or at which one that waits for room may be sent next
    """

    arrival: FloatArray
    work: FloatArray
    pane: IntArray
    closing: IntArray
    cost: FloatArray
    first: IntArray
    last: IntArray
    load: IntArray
    began: FloatArray
    busy: FloatArray
    done: IntArray
    sent: IntArray
    after: IntArray
    control: IntArray
    to: IntArray
    taken: IntArray
    holds: BoolArray
    owner: IntArray
    parts: IntArray
    computed: FloatArray
    points: FloatArray
    level: IntArray
    head: IntArray
    behind: IntArray
    result_time: FloatArray
    result_pane: IntArray
    result_worker: IntArray
    result_tuples: IntArray
    result_counter: IntArray
    result_rows: IntArray
    result_head: IntArray
    clock: FloatArray
    counts: IntArray
    heap: EventHeap


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
def _emit(farm: FarmState, now: float, worker: int, item: int) -> None:
    """Send the result of a partition, whose control message has reached the head of its queue."""
    code = farm.control[item - farm.arrival.shape[0]]
    pane = code if code >= 0 else ~code
    at = farm.counts[RESULTS]
    farm.counts[RESULTS] += 1
    farm.result_time[at] = now
    farm.result_pane[at] = pane
    farm.result_worker[at] = worker
    farm.result_tuples[at] = farm.taken[pane, worker]
    farm.result_counter[at] = farm.parts[pane] if code >= 0 else 0
    farm.result_rows[at] = farm.level[pane, worker]
    farm.result_head[at] = farm.head[pane, worker]
    farm.head[pane, worker] = -1
    farm.level[pane, worker] = 0
    farm.taken[pane, worker] = 0


@kernel
def _pass_on(farm: FarmState, now: float, worker: int) -> None:
    """Process the control messages at the head of a queue; they take no time."""
    tuples = farm.arrival.shape[0]
    while farm.first[worker] >= tuples:
        item = farm.first[worker]
        _emit(farm, now, worker, item)
        farm.first[worker] = farm.after[item]


@kernel
def _send_control(farm: FarmState, now: float, worker: int, code: int) -> None:
    at = farm.counts[CONTROLS]
    item = farm.arrival.shape[0] + at
    farm.counts[CONTROLS] += 1
    farm.control[at] = code
    farm.after[item] = -1
    if farm.first[worker] >= 0:
        farm.after[farm.last[worker]] = item
    else:
        farm.first[worker] = item
    farm.last[worker] = item
    _pass_on(farm, now, worker)


@kernel
def _hold(farm: FarmState, pane: int, worker: int) -> None:
    farm.holds[pane, worker] = True
    farm.parts[pane] += 1


@kernel
def close_next(farm: FarmState, now: float, workers: int) -> None:
    """Close the first open pane by control messages to its holders; without tuples, it is opened at the LLW first."""
    pane = farm.counts[CLOSED]
    farm.counts[CLOSED] += 1
    if farm.parts[pane] == 0:
        _hold(farm, pane, least_loaded(farm.load, workers, pane))
    for worker in range(farm.first.shape[0]):
        if farm.holds[pane, worker]:
            _send_control(farm, now, worker, pane)


@kernel
def advance(  # noqa: C901, PLR0912, PLR0915 - one loop: a call costs as much as an event
    farm: FarmState, until: float, policy: int, theta: float, workers: int, room: int
) -> None:
    """Process all events up to the time `until`; services count as busy up to it.

    An infinite `until` stands for the time at which the last tuple is sent. A queue has room for `room` tuples,
    including the one being served. A tuple for a full queue waits, as do all tuples behind it; whenever a service ends,
    its worker is chosen again.

    The arrays of the loop are local variables, since taking one out of the farm costs as much as an event.
    """
    arrival, work, panes, closing, cost = farm.arrival, farm.work, farm.pane, farm.closing, farm.cost
    first, last, load, after, count = farm.first, farm.last, farm.load, farm.after, farm.counts
    began, busy, done, sent = farm.began, farm.busy, farm.done, farm.sent
    to, taken, holds, owners, computed = farm.to, farm.taken, farm.holds, farm.owner, farm.computed
    points, level, head, behind, clock = farm.points, farm.level, farm.head, farm.behind, farm.clock
    exact = points.shape[0] > 0
    time, sequence, item_of, use = farm.heap
    tuples, most = arrival.shape[0], cost.shape[0] - 1
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
            pane = panes[item]
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
                end = now + cost[min(level[panes[item], worker], most)] * work[item]
                replace_first(time, sequence, item_of, use, end, worker)
            else:
                pop(time, sequence, item_of, use)
        elif arriving <= until:
            # A tuple arrives: close the panes that it completes, then send it to a worker.
            while count[CLOSED] < closing.shape[0] and closing[count[CLOSED]] <= item:
                close_next(farm, arriving, workers)
            pane = panes[item]
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
                worker = owners[pane]
                if worker < 0 or to[pane, worker] >= theta:
                    worker = least_loaded(load, workers, pane)
            if load[worker] >= room:
                clock[0] = time[0]
                continue
            clock[0] = arriving
            count[ARRIVED] += 1
            count[TURN] += 1
            owners[pane] = worker
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
    if until == np.inf:
        until = clock[0]
    for worker in range(first.shape[0]):
        if first[worker] >= 0:
            busy[worker] += until - began[worker]
            began[worker] = until


@kernel
def turn_off(farm: FarmState, now: float, before: int, workers: int) -> None:
    """Turn off the workers from `workers` up to `before` (paper 5, Algorithm 4).

    They close their partitions by force. A pane whose owner is turned off is assigned to the LLW, which opens an EMPTY
    partition of it if it has none.
    """
    for worker in range(workers, before):
        for pane in range(farm.counts[CLOSED], farm.closing.shape[0]):
            if farm.holds[pane, worker]:
                farm.holds[pane, worker] = False
                farm.to[pane, worker] = 0
                _send_control(farm, now, worker, ~pane)
    for pane in range(farm.counts[CLOSED], farm.closing.shape[0]):
        if farm.owner[pane] >= workers:
            owner = least_loaded(farm.load, workers, pane)
            farm.owner[pane] = owner
            if not farm.holds[pane, owner]:
                _hold(farm, pane, owner)
