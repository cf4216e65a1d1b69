"""The eager algorithm by Skyline Influence Time, tuple at a time, as paper 4 states it (section 3.1).

DB holds the non-obsolete points, EL their events; each point has one event at any time. It is the definition that the
batch form must agree with, and what a worker of the paper does.

At an instant at which points expire and arrive, those that expire are gone first: windows are open at their end. A point that
enters the front and leaves it in one instant gives an ADD and a DEL here; `net` takes them out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from skypane.operators.fronts.front_operator import ADD, DEL
from skypane.types import Micros


class Update(NamedTuple):
    """A row enters the front (ADD) or leaves it (DEL)."""

    time: Micros
    action: int
    row: int


class Kind(Enum):
    """What an event does to its point; points leave before others enter."""

    EXPIRE = 0
    SKYTIME = 1


@dataclass(slots=True)
class Point:
    """A stored point; it belongs to the skyline from its skytime event, or its arrival, on."""

    row: int
    values: tuple[float, ...]
    expires: Micros
    is_skyline: bool


@dataclass(slots=True)
class Eager:
    """The state of the algorithm: DB and EL, for a window in microseconds."""

    window: Micros
    db: dict[int, Point] = field(default_factory=dict)
    #: (time, kind, row); those of removed points too
    events: list[tuple[Micros, int, int]] = field(default_factory=list)

    def arrive(self, values: tuple[float, ...], time: Micros, row: int) -> Iterator[Update]:
        """Yield the updates up to the arrival of a point at `time`, no earlier than the one before, and those it brings."""
        yield from self.advance(time + 1)
        for obsolete in [other for other in self.db.values() if dominates(values, other.values)]:  # pruning phase
            del self.db[obsolete.row]
            if obsolete.is_skyline:
                yield Update(time, DEL, obsolete.row)
        critical = self._critical_dominator(values)  # search phase
        self.db[row] = Point(row, values, time + self.window, is_skyline=critical is None)  # insertion phase
        if critical is None:
            yield Update(time, ADD, row)
            self._schedule(time + self.window, Kind.EXPIRE, row)
        else:
            self._schedule(critical.expires, Kind.SKYTIME, row)

    def advance(self, until: Micros) -> Iterator[Update]:
        """Yield the updates before `until` that no arrival brings: let events happen, in order of time."""
        while self.events and self.events[0][0] < until:
            time, kind, row = heapq.heappop(self.events)
            point = self.db.get(row)
            if point is None:
                continue  # pruned, and its event with it
            if kind == Kind.SKYTIME.value:
                point.is_skyline = True
                yield Update(time, ADD, row)
                self._schedule(point.expires, Kind.EXPIRE, row)
            else:
                del self.db[row]
                yield Update(time, DEL, row)

    def _critical_dominator(self, values: tuple[float, ...]) -> Point | None:
        """Return the youngest point that dominates: the one that expires last."""
        dominators = (other for other in self.db.values() if dominates(other.values, values))
        return max(dominators, key=lambda other: other.expires, default=None)

    def _schedule(self, time: Micros, kind: Kind, row: int) -> None:
        heapq.heappush(self.events, (time, kind.value, row))


def dominates(s: tuple[float, ...], t: tuple[float, ...]) -> bool:
    """Whether s is nowhere worse than t and somewhere better; smaller is better."""
    return s != t and all(a <= b for a, b in zip(s, t, strict=True))


def net(updates: Iterable[Update]) -> list[Update]:
    """Return updates in order, without the stays of no length: what enters and leaves in one instant was never there."""
    by_stay: dict[tuple[Micros, int], list[Update]] = {}
    for update in updates:
        by_stay.setdefault((update.time, update.row), []).append(update)
    return sorted(group[0] for group in by_stay.values() if len(group) == 1)
