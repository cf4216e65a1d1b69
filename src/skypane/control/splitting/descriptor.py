"""Descriptor of an open pane, and the assignment of its next tuples: Algorithm 1 of paper 1.

The descriptor is the paper's entry of PD: a_worker owns the pane's active partition, which holds a_tuples tuples;
i_sizes holds the sizes of the partitions on other workers. A tuple goes to the owner while a_tuples < theta; then the
least loaded worker becomes the owner and continues its own partition of the pane, if it has one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from skypane.control.splitting.loads import least_loaded, levelled, room_before
from skypane.control.splitting.routing import Share
from skypane.snapshots import JsonState

_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class PaneDescriptor(JsonState):
    """worker: a_worker, None before the first tuple; tuples: a_tuples; sizes: i_sizes of workers with a partition."""

    worker: int | None = None
    tuples: int = 0
    sizes: dict[int, int] = field(default_factory=dict)

    def all_sizes(self) -> dict[int, int]:
        """Return worker -> tuples of all partitions, including the active one."""
        return self.sizes if self.worker is None else {**self.sizes, self.worker: self.tuples}

    @property
    def partitions(self) -> int:
        """Number of workers that hold tuples of the pane."""
        return sum(size > 0 for size in self.all_sizes().values())

    def owned_by(self, worker: int) -> PaneDescriptor:
        """Return the descriptor with another owner, which continues its own partition."""
        sizes = self.all_sizes()
        return PaneDescriptor(worker, sizes.get(worker, 0), {w: size for w, size in sizes.items() if w != worker})

    def without(self, workers: int, owner: int) -> PaneDescriptor:
        """Return the descriptor after workers from number `workers` on were turned off, which closes their partitions.

        owner   the new owner, if the current one was turned off (paper 5, Algorithm 4)
        """
        sizes = {worker: size for worker, size in self.all_sizes().items() if worker < workers}
        if self.worker is not None and self.worker < workers:
            owner = self.worker
        return PaneDescriptor(None, 0, sizes).owned_by(owner)

    def more(self, tuples: int) -> PaneDescriptor:
        """Return the descriptor after `tuples` more tuples for the owner."""
        return PaneDescriptor(self.worker, self.tuples + tuples, self.sizes)


def send(pane: PaneDescriptor, number: int, theta: float, loads: Sequence[int]) -> tuple[PaneDescriptor, int]:
    """Send one tuple of pane `number`; return the descriptor after it, and the worker (lines 9 to 23).

    loads   tuples waiting at each active worker; an owner that is not active was removed, and the LLW replaces it
    """
    worker = pane.worker
    if worker is None or worker >= len(loads) or pane.tuples >= theta:
        worker = least_loaded(loads, number)
        pane = pane.owned_by(worker)
    return pane.more(1), worker


def assign(
    pane: PaneDescriptor, number: int, theta: float, tuples: int, loads: Sequence[int]
) -> tuple[PaneDescriptor, tuple[Share, ...]]:
    """Send `tuples` tuples of pane `number`; return the descriptor after them, and the share of each worker.

    The shares are in the order of ownership. The result equals that of send() for each tuple, with `loads` increased by
    each, but it is computed in steps of whole partitions, so that a million tuples take no longer than a few.
    """
    waiting = list(loads)
    given: dict[int, int] = {}

    def give(worker: int, count: int) -> None:
        nonlocal pane
        if count:
            pane = pane.owned_by(worker).more(count)
            waiting[worker] += count
            given[worker] = given.get(worker, 0) + count

    if pane.worker is not None and pane.worker < len(loads):
        give(pane.worker, min(tuples, _room(pane.tuples, theta)))
    while (left := tuples - sum(given.values())) > 0:
        sizes = pane.all_sizes()
        full = [worker for worker in range(len(loads)) if sizes.get(worker, 0) >= theta]
        worker = least_loaded(waiting, number)
        if worker not in full:
            give(worker, min(left, max(1, _room(sizes.get(worker, 0), theta))))
            continue
        # Workers with full partitions take a tuple each in turn until a worker without one is less loaded.
        rest = [other for other in range(len(loads)) if other not in full]
        if rest:
            lowest = least_loaded(waiting, number, rest)
            left = min(left, sum(room_before(waiting, worker, lowest, number) for worker in full))
        for worker, count in levelled(waiting, full, left - 1, number).items():
            give(worker, count)
        give(least_loaded(waiting, number, full), 1)
    return pane, tuple(Share(worker, count) for worker, count in given.items())


def _room(size: int, theta: float) -> int:
    """Return the number of tuples until the size of a partition reaches theta."""
    return max(0, math.ceil(theta - size)) if theta < math.inf else _NO_LIMIT
