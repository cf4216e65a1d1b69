"""Speed and load of paper 4's farm, by a recurrence over points and workers instead of messages.

All workers process all points in the same order. A worker starts a point when it has finished the point before and this
one is in its queue; it takes a fixed time plus a time per stored point. Emission waits for room in every queue. With a
synchronous reduce the owner finishes only when all others have finished.

Which point prunes which does not depend on the workers; `Lives` has, for each point, the later point with which it is
removed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.compiled import kernel
from skypane.operators.fronts import NewPoints
from skypane.operators.fronts.shards import SpanFront
from skypane.types import ConfigError, FloatArray, IntArray, Micros

OWNERS: Final = ("RR", "OD", "LLW", "LLW+")
"""Owner of a point: workers in turn; the first with room in its queue; the one with the fewest stored points; the one
with the fewest stored and waiting points."""
_OD: Final = 1
_LLW: Final = 2
_LLW_PLUS: Final = 3

_PUSHES: Final = 5
"""Maximum number of successive points that may find a full queue."""


class Lives(NamedTuple):
    """Points in order of arrival: times in seconds, (n,), and the point with which each is removed, n for never."""

    times: FloatArray
    gone: IntArray


class Costs(NamedTuple):
    """Seconds per point: a fixed part, a part per point stored at the worker, and a reduce after the last worker."""

    point: float
    stored: float
    reduce: float = 0.0


class Farm(NamedTuple):
    """A farm: its workers, the capacity of each queue, the choice of owners, and whether reduces are asynchronous."""

    workers: int
    queue: int = 10_000
    owner: str = "LLW+"
    asynchronous: bool = True


class Run(NamedTuple):
    """Results of a run: when each point was emitted and done, (n,), and the points stored by worker, (n, workers)."""

    emitted: FloatArray
    done: FloatArray
    stored: NDArray[np.int32]

    @property
    def difference(self) -> IntArray:
        """Points at the most loaded worker less those at the least loaded one, after each point (paper 4, figure 7)."""
        spread: IntArray = (self.stored.max(axis=1) - self.stored.min(axis=1)).astype(np.int64)
        return spread

    def bandwidth(self, since: float = 0.25) -> float:
        """Return the points served per second after the share `since` of the points, when windows are full."""
        first = int(len(self.done) * since)
        return float((len(self.done) - 1 - first) / (self.done[-1] - self.done[first]))


def lives(points: FloatArray, times: IntArray, window: Micros) -> Lives:
    """Return when each of n points, ordered by time in microseconds, is removed: pruned by a later one, or expired."""
    front = SpanFront(points.shape[1], window, len(times))
    if len(times):
        front.step(NewPoints(points, times, np.arange(len(times))), int(times[-1]) + 1)
    return Lives(times / 1e6, np.searchsorted(times, front.spans.ends))


def simulate(stream: Lives, farm: Farm, costs: Costs) -> Run:
    """Run a stream through a farm; raise ConfigError if the farm is invalid."""
    workers, queue, owner, asynchronous = farm
    if workers < 1 or queue < 1 or owner not in OWNERS:
        raise ConfigError(
            f"workers and queue must be at least 1 and owner one of {', '.join(OWNERS)}, got {workers}, {queue}, "
            f"{owner!r}"
        )
    n = len(stream.times)
    order = np.argsort(
        stream.gone, kind="stable"
    )  # the points removed with point i are order[bounds[i] : bounds[i + 1]]
    bounds = np.searchsorted(stream.gone[order], np.arange(n + 1))
    run = Run(np.empty(n), np.empty(n), np.empty((n, workers), np.int32))
    _run(stream.times, (order, bounds), (queue, OWNERS.index(owner), asynchronous), np.array(costs), run)
    return run


@kernel
def _least_loaded(stored: NDArray[np.int32], seen: IntArray, waiting: IntArray) -> int:
    """Return the worker with the fewest points: those stored when the emitter last looked, and those that wait."""
    least = np.int64(1) << 62
    owner = 0
    for w in range(stored.shape[1]):
        load = waiting[w] + (stored[seen[w] - 1, w] if seen[w] > 0 else 0)
        if load < least:
            least = load
            owner = w
    return owner


@kernel
def _look(seen: IntArray, ready: FloatArray, waiting: IntArray, owners: IntArray, now: float, i: int) -> None:
    """Update the emitter's view of the points before i that each worker has done by `now`."""
    ring = ready.shape[1]
    for w in range(seen.shape[0]):
        while seen[w] < i and ready[w, seen[w] % ring] <= now:
            waiting[w] -= owners[seen[w]] == w
            seen[w] += 1


@kernel
def _run(
    times: FloatArray, gone: tuple[IntArray, IntArray], farm: tuple[int, int, bool], costs: FloatArray, run: Run
) -> None:
    """Emit each point, choose its owner and let all workers process it; records of queues reach back `queue` points."""
    emitted, done, stored = run
    queue, owner_by, asynchronous = farm
    order, bounds = gone
    n, workers = stored.shape
    begun = np.full(
        (workers, queue), -np.inf
    )  # when the worker started the point, by its number modulo the queue's capacity
    ring = queue + 3  # the points that may be in a queue, in work, or done since the emitter last looked
    ready = np.full((workers, ring), -np.inf)  # when the worker had finished it
    free = np.zeros(workers)
    held = np.zeros(workers, np.int64)
    seen = np.zeros(workers, np.int64)  # points that the emitter knows to be done
    waiting = np.zeros(workers, np.int64)  # points not done yet that the worker owns
    nobody = np.zeros(workers, np.int64)
    owners = np.empty(n, np.int64)
    last = 0.0
    for i in range(n):
        now = max(last, times[i])
        _look(seen, ready, waiting, owners, now, i)
        owner = i % workers
        if owner_by == _OD:
            owner = np.argmin(np.maximum(begun[:, i % queue], now))
        elif owner_by >= _LLW:
            owner = _least_loaded(stored, seen, waiting if owner_by == _LLW_PLUS else nobody)
        for w in range(workers):
            now = max(now, begun[w, i % queue])  # room in every queue
        emitted[i] = last = now
        owners[i] = owner
        waiting[owner] += 1
        slowest = 0.0
        for w in range(workers):
            begun[w, i % queue] = max(now, free[w])
            free[w] = begun[w, i % queue] + costs[0] + costs[1] * held[w]
            slowest = max(slowest, free[w])
        done[i] = slowest + costs[2]
        if not asynchronous:
            free[owner] = done[i]
        for g in range(bounds[i], bounds[i + 1]):
            held[owners[order[g]]] -= 1
        held[owner] += 1
        for w in range(workers):
            ready[w, i % ring] = free[w]
            stored[i, w] = held[w]


def keeps_up(stream: Lives, run: Run) -> bool:
    """Return whether at most five successive points found a full queue (paper 4, section 6.3)."""
    late = run.emitted > stream.times + 1e-9
    runs = np.diff(np.flatnonzero(np.concatenate(([True], ~late, [True]))))
    return bool(runs.max(initial=1) <= _PUSHES + 1)
