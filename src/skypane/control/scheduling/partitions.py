"""How many partitions a pane has: told to PLQ workers, counted by the WLQ, while workers come and go.

Paper 5, sections 3.1 and 4.1, Algorithm 4. The emitter numbers the partitions of a pane; each time one is added, those
who hold another are told the new number (UPDATE_CNT). A worker that is turned off closes what it holds, with the
number 0, since more may follow. An owner that was turned off is replaced by the least loaded worker, which opens an
empty partition (EMPTY) if it has none: so at least one partition is closed by the punctuation, with the final number.
Panes without tuples get an EMPTY too. Messages to one worker arrive in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from skypane.control.splitting.loads import least_loaded


class Tuple(NamedTuple):
    """One tuple of a pane; if the worker has no partition of it, it opens one with this counter."""

    worker: int
    pane: int
    counter: int


class Empty(NamedTuple):
    """Open an empty partition with this counter."""

    worker: int
    pane: int
    counter: int


class UpdateCount(NamedTuple):
    """The pane now has this many partitions."""

    worker: int
    pane: int
    counter: int


class Close(NamedTuple):
    """A punctuation: all panes below are complete."""

    worker: int
    below: int


class TurnOff(NamedTuple):
    """Close everything with the counter 0, and sleep."""

    worker: int


Message: TypeAlias = Tuple | Empty | UpdateCount | Close | TurnOff


@dataclass(slots=True)
class _Pane:
    owner: int
    partitions: int = 0
    holders: set[int] = field(default_factory=set)


class PaneDirectory:
    """The PLQ emitter's knowledge of open panes, and the messages that follow from what happens to them."""

    def __init__(self, first: int, workers: Iterable[int]) -> None:
        self.active = set(workers)
        self._open: dict[int, _Pane] = {}
        self._next = first

    def sent(self, pane: int, worker: int) -> list[Message]:
        """A tuple of a pane is sent to a worker, who owns the pane from now on."""
        entry = self._open.setdefault(pane, _Pane(worker))
        entry.owner = worker
        told = [] if worker in entry.holders else self._opened(pane, worker)
        return [Tuple(worker, pane, entry.partitions), *told]

    def close(self, below: int, loads: Sequence[int]) -> list[Message]:
        """A punctuation closes the panes below; those that had no tuple are opened first."""
        told: list[Message] = []
        for pane in range(self._next, below):
            if pane not in self._open:
                told += self._empty(pane, self._least_loaded(loads, pane))
        for pane in [pane for pane in self._open if pane < below]:
            del self._open[pane]
        self._next = max(self._next, below)
        return [*told, *(Close(worker, below) for worker in sorted(self.active))]

    @property
    def owners(self) -> dict[int, int]:
        """Return the owner of each open pane."""
        return {pane: entry.owner for pane, entry in self._open.items()}

    def add(self, workers: Iterable[int]) -> None:
        """Workers wake up; they hold nothing."""
        self.active |= set(workers)

    def remove(self, workers: Iterable[int], loads: Sequence[int]) -> list[Message]:
        """Turn workers off (Algorithm 4); at least one must stay."""
        gone = set(workers) & self.active
        self.active -= gone
        told: list[Message] = [TurnOff(worker) for worker in sorted(gone)]
        for pane, entry in self._open.items():
            entry.holders -= gone
            if entry.owner in gone:
                entry.owner = self._least_loaded(loads, pane)
                if entry.owner not in entry.holders:
                    told += self._empty(pane, entry.owner)
        return told

    def _empty(self, pane: int, worker: int) -> list[Message]:
        entry = self._open.setdefault(pane, _Pane(worker))
        others = self._opened(pane, worker)
        return [Empty(worker, pane, entry.partitions), *others]

    def _opened(self, pane: int, worker: int) -> list[Message]:
        """Count a new partition; tell those who hold another."""
        entry = self._open[pane]
        entry.partitions += 1
        told: list[Message] = [UpdateCount(other, pane, entry.partitions) for other in sorted(entry.holders)]
        entry.holders.add(worker)
        return told

    def _least_loaded(self, loads: Sequence[int], pane: int) -> int:
        active = sorted(self.active)
        return active[least_loaded([loads[worker] for worker in active], pane)]


class PartitionCount:
    """The WLQ's count: a pane is complete when as many results have come as one of them says it has partitions."""

    def __init__(self) -> None:
        self._received: dict[int, int] = {}
        self._expected: dict[int, int] = {}
        self._complete: set[int] = set()

    def received(self, pane: int, counter: int) -> bool:
        """Count a result; return whether its pane is complete now."""
        self._received[pane] = self._received.get(pane, 0) + 1
        if counter:
            self._expected[pane] = counter
        if self._received[pane] != self._expected.get(pane):
            return False
        del self._received[pane], self._expected[pane]
        self._complete.add(pane)
        return True

    def is_complete(self, pane: int) -> bool:
        return pane in self._complete

    def forget_below(self, pane: int) -> None:
        """Forget complete panes that no one will ask for."""
        self._complete = {other for other in self._complete if other >= pane}
