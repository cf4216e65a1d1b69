"""Allocation and growth of the arrays of a pane-level farm."""

from __future__ import annotations

from typing import Any

import numpy as np

from skypane.runtime.sim import pane_events
from skypane.runtime.sim.heap import empty_heap
from skypane.runtime.sim.pane_events import FarmState
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.types import FloatArray

_SPARE = 4
"""Initial control messages per partition: it is closed once, and by force whenever its worker is turned off."""


def room(farm: FarmState) -> int:
    """Return the number of control messages for which there is room."""
    return len(farm.control) - int(farm.counts[pane_events.CONTROLS])


def roomier(farm: FarmState) -> FarmState:
    """Return the farm with room for twice as many control messages and results."""
    results = [name for name in FarmState._fields if name.startswith("result_")]
    more: dict[str, Any] = {
        name: np.concatenate([getattr(farm, name), np.zeros_like(getattr(farm, name))]) for name in results
    }
    after = np.concatenate([farm.after, np.full(len(farm.control), -1)])
    return farm._replace(control=np.concatenate([farm.control, np.zeros_like(farm.control)]), after=after, **more)


def made(stream: SimulatedStream, cost: FloatArray, most: int) -> FarmState:
    """Return the initial arrays of a farm of up to `most` workers."""
    tuples, panes = len(stream.arrival), stream.panes
    partitions = panes * most
    controls = _SPARE * partitions + panes
    whole = np.int64
    exact = stream.points is not None
    taken = np.zeros((panes, most), whole)
    return FarmState(
        arrival=np.ascontiguousarray(stream.arrival, np.float64),
        work=np.ascontiguousarray(stream.work, np.float64),
        pane=np.ascontiguousarray(stream.pane, whole),
        closing=np.ascontiguousarray(stream.closing, whole),
        cost=np.ascontiguousarray(cost, np.float64),
        first=np.full(most, -1, whole),
        last=np.full(most, -1, whole),
        load=np.zeros(most, whole),
        began=np.zeros(most),
        busy=np.zeros(most),
        done=np.zeros(most, whole),
        sent=np.zeros(most, whole),
        after=np.full(tuples + controls, -1, whole),
        control=np.zeros(controls, whole),
        to=np.zeros((panes, most), whole),
        taken=taken,
        holds=np.zeros((panes, most), np.bool_),
        owner=np.full(panes, -1, whole),
        parts=np.zeros(panes, whole),
        computed=np.zeros(panes),
        points=np.zeros((0, 0)) if stream.points is None else np.ascontiguousarray(stream.points, np.float64),
        level=np.zeros((panes, most), whole) if exact else taken,
        head=np.full((panes, most), -1, whole),
        behind=np.full(tuples if exact else 0, -1, whole),
        result_time=np.zeros(controls),
        result_pane=np.zeros(controls, whole),
        result_worker=np.zeros(controls, whole),
        result_tuples=np.zeros(controls, whole),
        result_counter=np.zeros(controls, whole),
        result_rows=np.zeros(controls, whole),
        result_head=np.zeros(controls, whole),
        clock=np.zeros(1),
        counts=np.zeros(6, whole),
        heap=empty_heap(most + 1),
    )
