"""The pane-level farm in virtual time: an emitter, PLQ workers with unbounded queues, partition results out.

One loop over two kinds of event: a tuple arrives, a worker finishes one. All that the farm knows is in arrays that the
caller made; farm.py makes them, and plain.py says the same in plain Python.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import kernel
from skypane.runtime.sim.heap import Heap, pop, push, replace_first
from skypane.runtime.sim.partition import inserted
from skypane.types import BoolArray, FloatArray, IntArray

PB_RR: Final = 0
TB_RR: Final = 1
THRESHOLD: Final = 2

ARRIVED, CLOSED, CONTROLS, RESULTS, DROPPED, TURN = range(6)
"""Where the counters stand in `Farm.counts`: tuples so far, panes so far, control messages, results, drops, TB_RR's turn."""


class Farm(NamedTuple):
    """The stream (N tuples, P panes), the workers (W), and what has happened.

    arrival, work     (N,) seconds at which each tuple comes; by what its service is longer than usual
    pane              (N,) its pane
    closing           (P,) index of the tuple on whose arrival the pane is closed; N: not within the stream
    cost              (K,) seconds of a tuple in a partition that has taken k before; the last holds beyond
    first, last       (W,) items at the ends of each queue, -1 for none; `first` is being served
    load              (W,) tuples in each queue, with the one being served
    began             (W,) when the service, or this interval's part of it, began
    busy, done, sent  (W,) phi, q and lambda of this interval
    after             (N + C,) the item behind each in its queue: tuples, then C control messages
    control           (C,) pane to close; ~pane: closed by force
    to, taken         (P, W) tuples sent to, and processed of, each partition
    holds             (P, W) whether a worker has, or will have, the partition
    owner, parts      (P,) the owner, -1 for none; partitions so far
    computed          (P,) when its last tuple so far was processed
    points            (N, d) values of the tuples, where results are exact; else (0, 0)
    level             (P, W) what a tuple's cost goes by: rows in the partition's result, where results are exact; else `taken`
    head, behind      (P, W), (N,) the results themselves: see partition.py
    result_*          of each partition result: when, which pane, which worker, how many tuples, the partition counter,
                      rows and first row where results are exact
    clock             (1,) when the last tuple was sent, or the next one may be, if it waits for room in a queue
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
    heap: Heap


@kernel
def least_loaded(load: IntArray, workers: int, pane: int) -> int:
    """Return the LLW; of equals the first in the order in which the pane asks (control/splitting/loads.py)."""
    found = pane % workers
    for step in range(1, workers):
        worker = (pane + step) % workers
        if load[worker] < load[found]:
            found = worker
    return found


@kernel
def _emit(farm: Farm, now: float, worker: int, item: int) -> None:
    """A control message has come to the head of a queue: the partition's result goes out."""
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
def _pass_on(farm: Farm, now: float, worker: int) -> None:
    """Let the messages at the head of a queue through; they take no time."""
    tuples = farm.arrival.shape[0]
    while farm.first[worker] >= tuples:
        item = farm.first[worker]
        _emit(farm, now, worker, item)
        farm.first[worker] = farm.after[item]


@kernel
def _send_control(farm: Farm, now: float, worker: int, code: int) -> None:
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
def _hold(farm: Farm, pane: int, worker: int) -> None:
    farm.holds[pane, worker] = True
    farm.parts[pane] += 1


@kernel
def close_next(farm: Farm, now: float, workers: int) -> None:
    """Close the first open pane: its holders are told; a pane without tuples is opened, empty, at the LLW."""
    pane = farm.counts[CLOSED]
    farm.counts[CLOSED] += 1
    if farm.parts[pane] == 0:
        _hold(farm, pane, least_loaded(farm.load, workers, pane))
    for worker in range(farm.first.shape[0]):
        if farm.holds[pane, worker]:
            _send_control(farm, now, worker, pane)


@kernel
def advance(  # noqa: C901, PLR0912, PLR0915 - one loop: a call costs as much as an event
    farm: Farm, until: float, policy: int, theta: float, workers: int, room: int
) -> None:
    """Let everything happen up to a time, an infinite one until the last tuple is sent; services count as busy up to it.

    A queue has room for so many tuples, with the one that is served. A tuple whose worker has none waits, and those behind
    it: with each service that ends it is looked again where it would go.

    The loop's arrays have names of their own: to take one out of the farm costs as much as an event.
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
            # A worker finishes a tuple, and goes on with the next in its queue.
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
            # A tuple arrives: panes that it completes are closed, then it is sent to a worker.
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
def turn_off(farm: Farm, now: float, before: int, workers: int) -> None:
    """Turn off the workers from `workers` up to `before` (paper 5, Algorithm 4).

    They close what they hold by force; a pane whose owner is among them goes to the LLW, which opens an EMPTY partition
    of it if it has none.
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
