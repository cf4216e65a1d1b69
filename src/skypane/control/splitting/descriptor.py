"""What is known of a pane that is being filled, and who gets its next tuples: Algorithm 1 of paper 1.

The descriptor is the paper's entry of PD: a_worker owns the pane's active partition, which holds a_tuples tuples;
i_sizes has the sizes of those on other workers. A tuple goes to the owner while a_tuples < theta; then the least loaded
worker becomes the owner, and goes on with the partition that it may have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from skypane.control.snapshots import JsonState
from skypane.control.splitting.loads import least_loaded, levelled, room_before
from skypane.control.splitting.routing import Share

_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class PaneDescriptor(JsonState):
    """worker: a_worker, None before the first tuple; tuples: a_tuples; sizes: i_sizes of the workers that have any."""

    worker: int | None = None
    tuples: int = 0
    sizes: dict[int, int] = field(default_factory=dict)

    def all_sizes(self) -> dict[int, int]:
        """Return worker -> tuples of every partition, the active one with them."""
        return self.sizes if self.worker is None else {**self.sizes, self.worker: self.tuples}

    @property
    def partitions(self) -> int:
        """How many workers hold tuples of the pane."""
        return sum(size > 0 for size in self.all_sizes().values())

    def owned_by(self, worker: int) -> PaneDescriptor:
        """Return the descriptor with another owner, who goes on with what it holds."""
        sizes = self.all_sizes()
        return PaneDescriptor(worker, sizes.get(worker, 0), {w: size for w, size in sizes.items() if w != worker})

    def without(self, workers: int, owner: int) -> PaneDescriptor:
        """Return the descriptor after the workers from number `workers` on were turned off: their partitions are closed.

        owner   takes over, if the owner was among them (paper 5, Algorithm 4)
        """
        sizes = {worker: size for worker, size in self.all_sizes().items() if worker < workers}
        if self.worker is not None and self.worker < workers:
            owner = self.worker
        return PaneDescriptor(None, 0, sizes).owned_by(owner)

    def more(self, tuples: int) -> PaneDescriptor:
        """Return the descriptor after so many tuples more for the owner."""
        return PaneDescriptor(self.worker, self.tuples + tuples, self.sizes)


def send(pane: PaneDescriptor, number: int, theta: float, loads: Sequence[int]) -> tuple[PaneDescriptor, int]:
    """Send one tuple of pane `number`; return the pane after it, and the worker (lines 9 to 23).

    loads   tuples waiting at each active worker; an owner beyond them was removed, and the LLW takes its place
    """
    worker = pane.worker
    if worker is None or worker >= len(loads) or pane.tuples >= theta:
        worker = least_loaded(loads, number)
        pane = pane.owned_by(worker)
    return pane.more(1), worker


def assign(
    pane: PaneDescriptor, number: int, theta: float, tuples: int, loads: Sequence[int]
) -> tuple[PaneDescriptor, tuple[Share, ...]]:
    """Send a whole count of tuples of pane `number`; return the pane after them, and who got how many, first owner first.

    The same as send() for each, with `loads` growing by what is sent; but in steps of whole partitions, so that a
    million tuples cost no more than a few.
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
        # Full ones that are the least loaded take a tuple each in turn, until one that is not full is less loaded.
        rest = [other for other in range(len(loads)) if other not in full]
        if rest:
            lowest = least_loaded(waiting, number, rest)
            left = min(left, sum(room_before(waiting, worker, lowest, number) for worker in full))
        for worker, count in levelled(waiting, full, left - 1, number).items():
            give(worker, count)
        give(least_loaded(waiting, number, full), 1)
    return pane, tuple(Share(worker, count) for worker, count in given.items())


def _room(size: int, theta: float) -> int:
    """Return how many tuples a partition takes until its size is no longer below theta."""
    return max(0, math.ceil(theta - size)) if theta < math.inf else _NO_LIMIT
