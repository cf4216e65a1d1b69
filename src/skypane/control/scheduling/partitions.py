"""Number of partitions of a pane: sent to PLQ workers and counted by the WLQ, while workers are added and removed.

Paper 5, sections 3.1 and 4.1, Algorithm 4. The emitter counts the partitions of a pane; when one is added, the workers
that hold another one receive the new number (UPDATE_CNT). A worker that is turned off closes its partitions with the
number 0, since more may follow. An owner that is turned off is replaced by the least loaded worker, which opens an
empty partition (EMPTY) if it has none. So at least one partition is closed by the punctuation, with the final number.
Panes without tuples get an EMPTY too. Messages to one worker arrive in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from skypane.control.splitting.loads import least_loaded


class Tuple(NamedTuple):
    """One tuple of a pane; a worker without a partition of the pane opens one with this counter."""

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
    """A punctuation: all panes below `below` are complete."""

    worker: int
    below: int


class TurnOff(NamedTuple):
    """Close all partitions with the counter 0, and sleep."""

    worker: int


Message: TypeAlias = Tuple | Empty | UpdateCount | Close | TurnOff


@dataclass(slots=True)
class _Pane:
    owner: int
    partitions: int = 0
    holders: set[int] = field(default_factory=set)


class PaneDirectory:
    """State of the open panes at the PLQ's emitter; its methods return the messages to send to workers."""

    def __init__(self, first: int, workers: Iterable[int]) -> None:
        self.active = set(workers)
        self._open: dict[int, _Pane] = {}
        self._next = first

    def sent(self, pane: int, worker: int) -> list[Message]:
        """Send a tuple of a pane to a worker, which becomes the pane's owner."""
        entry = self._open.setdefault(pane, _Pane(worker))
        entry.owner = worker
        updates = [] if worker in entry.holders else self._opened(pane, worker)
        return [Tuple(worker, pane, entry.partitions), *updates]

    def close(self, below: int, loads: Sequence[int]) -> list[Message]:
        """Close the panes below a punctuation; panes without tuples are opened first."""
        messages: list[Message] = []
        for pane in range(self._next, below):
            if pane not in self._open:
                messages += self._empty(pane, self._least_loaded(loads, pane))
        for pane in [pane for pane in self._open if pane < below]:
            del self._open[pane]
        self._next = max(self._next, below)
        return [*messages, *(Close(worker, below) for worker in sorted(self.active))]

    @property
    def owners(self) -> dict[int, int]:
        """The owner of each open pane."""
        return {pane: entry.owner for pane, entry in self._open.items()}

    def add(self, workers: Iterable[int]) -> None:
        """Activate workers; they hold no partitions."""
        self.active |= set(workers)

    def remove(self, workers: Iterable[int], loads: Sequence[int]) -> list[Message]:
        """Turn workers off (Algorithm 4); at least one must stay."""
        gone = set(workers) & self.active
        self.active -= gone
        messages: list[Message] = [TurnOff(worker) for worker in sorted(gone)]
        for pane, entry in self._open.items():
            entry.holders -= gone
            if entry.owner in gone:
                entry.owner = self._least_loaded(loads, pane)
                if entry.owner not in entry.holders:
                    messages += self._empty(pane, entry.owner)
        return messages

    def _empty(self, pane: int, worker: int) -> list[Message]:
        entry = self._open.setdefault(pane, _Pane(worker))
        others = self._opened(pane, worker)
        return [Empty(worker, pane, entry.partitions), *others]

    def _opened(self, pane: int, worker: int) -> list[Message]:
        """Count a new partition; return the updates for the workers that hold another one."""
        entry = self._open[pane]
        entry.partitions += 1
        updates: list[Message] = [UpdateCount(other, pane, entry.partitions) for other in sorted(entry.holders)]
        entry.holders.add(worker)
        return updates

    def _least_loaded(self, loads: Sequence[int], pane: int) -> int:
        active = sorted(self.active)
        return active[least_loaded([loads[worker] for worker in active], pane)]


class PartitionCount:
    """Count of results at the WLQ: a pane is complete when it has as many results as one of them reports partitions."""

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
        """Discard complete panes below `pane`."""
        self._complete = {other for other in self._complete if other >= pane}
