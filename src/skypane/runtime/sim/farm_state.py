"""The state of a pane-level farm: named tuples of arrays, which the compiled event loop takes as one argument.

Sizes: N tuples, P panes, W workers, C control messages, K costs. A result is exact if the tuples have values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skypane.runtime.sim.heap import EventHeap, empty_heap
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.types import BoolArray, FloatArray, IntArray

ARRIVED, CLOSED, CONTROLS, RESULTS, DROPPED, TURN = range(6)
"""Indices into `FarmState.counts`: tuples arrived, panes closed, control messages, results, drops, TB_RR's position."""

_SPARE = 4
"""Initial control messages per partition: it is closed once, and by force whenever its worker is turned off."""


class FarmTuples(NamedTuple):
    """The stream, which does not change."""

    arrival: FloatArray  # (N,) seconds
    work: FloatArray  # (N,) factor by which the service is longer than usual
    pane: IntArray  # (N,)
    points: FloatArray  # (N, d) values if results are exact, else (0, 0)


class FarmPanes(NamedTuple):
    """The panes, each (P,)."""

    closing: IntArray  # index of the tuple on whose arrival the pane is closed; N: not within the stream
    owner: IntArray  # -1 for none
    parts: IntArray  # number of partitions so far
    computed: FloatArray  # time at which the latest tuple was processed


class FarmWorkers(NamedTuple):
    """The measurements of the workers in this interval, each (W,)."""

    began: FloatArray  # time at which the service, or its part in this interval, began
    busy: FloatArray  # phi
    done: IntArray  # q
    sent: IntArray  # lambda


class FarmQueues(NamedTuple):
    """The workers' queues, linked lists. Items below N are tuples, the others control messages; -1 for none."""

    first: IntArray  # (W,) the item that is being served
    last: IntArray  # (W,)
    load: IntArray  # (W,) tuples, including the one being served
    after: IntArray  # (N + C,) the next item of each
    control: IntArray  # (C,) pane to close; ~pane: closed by force


class FarmPartitions(NamedTuple):
    """The partitions, each (P, W) but `behind`."""

    holds: BoolArray  # whether the worker has, or will have, the partition
    to: IntArray  # tuples sent to it
    taken: IntArray  # tuples processed
    level: IntArray  # index into `cost`: rows in its result if results are exact, else `taken` itself
    head: IntArray  # first tuple of its exact result, see partition.py
    behind: IntArray  # (N,) next tuple of the same result; (0,) unless results are exact


class FarmResults(NamedTuple):
    """The partition results so far, each (C,); rows and head only if results are exact."""

    time: FloatArray
    pane: IntArray
    worker: IntArray
    tuples: IntArray
    counter: IntArray  # partitions of the pane; 0: closed by force
    rows: IntArray
    head: IntArray


class FarmState(NamedTuple):
    """The state of a farm."""

    tuples: FarmTuples
    panes: FarmPanes
    workers: FarmWorkers
    queues: FarmQueues
    partitions: FarmPartitions
    results: FarmResults
    heap: EventHeap
    cost: FloatArray  # (K,) seconds of a tuple in a partition of level k; the last value holds beyond
    counts: IntArray  # (6,) by the constants above
    clock: FloatArray  # (1,) when the last tuple was sent, or when one that waits for room may be sent next

    @property
    def spare(self) -> int:
        """The number of control messages for which there is room."""
        return len(self.queues.control) - int(self.counts[CONTROLS])

    def roomier(self) -> FarmState:
        """Return the farm with room for twice as many control messages and results."""
        queues, none = self.queues, np.full(len(self.queues.control), -1)
        return self._replace(
            queues=queues._replace(control=_doubled(queues.control), after=np.concatenate([queues.after, none])),
            results=FarmResults(*map(_doubled, self.results)),
        )


def _doubled(column: Any) -> Any:
    return np.concatenate([column, np.zeros_like(column)])


def initial_state(stream: SimulatedStream, cost: FloatArray, most: int) -> FarmState:
    """Return the initial state of a farm of up to `most` workers."""
    panes, exact, whole = stream.panes, stream.points is not None, np.int64
    tuples, partitions = len(stream.arrival), (panes, most)
    controls = _SPARE * panes * most + panes
    taken = np.zeros(partitions, whole)
    return FarmState(
        FarmTuples(
            arrival=np.ascontiguousarray(stream.arrival, np.float64),
            work=np.ascontiguousarray(stream.work, np.float64),
            pane=np.ascontiguousarray(stream.pane, whole),
            points=np.zeros((0, 0)) if stream.points is None else np.ascontiguousarray(stream.points, np.float64),
        ),
        FarmPanes(
            closing=np.ascontiguousarray(stream.closing, whole),
            owner=np.full(panes, -1, whole),
            parts=np.zeros(panes, whole),
            computed=np.zeros(panes),
        ),
        FarmWorkers(began=np.zeros(most), busy=np.zeros(most), done=np.zeros(most, whole), sent=np.zeros(most, whole)),
        FarmQueues(
            first=np.full(most, -1, whole),
            last=np.full(most, -1, whole),
            load=np.zeros(most, whole),
            after=np.full(tuples + controls, -1, whole),
            control=np.zeros(controls, whole),
        ),
        FarmPartitions(
            holds=np.zeros(partitions, np.bool_),
            to=np.zeros(partitions, whole),
            taken=taken,
            level=np.zeros(partitions, whole) if exact else taken,
            head=np.full(partitions, -1, whole),
            behind=np.full(tuples if exact else 0, -1, whole),
        ),
        FarmResults(np.zeros(controls), *(np.zeros(controls, whole) for _ in FarmResults._fields[1:])),
        heap=empty_heap(most + 1),
        cost=np.ascontiguousarray(cost, np.float64),
        counts=np.zeros(6, whole),
        clock=np.zeros(1),
    )
