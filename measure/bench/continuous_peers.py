"""Peers of measure.bench.continuous: the eager algorithm of paper 4, over NumPy arrays and over an R-tree."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import rtree

from skypane.operators.fronts import ADD, DEL, FrontContents
from skypane.types import FloatArray, IntArray

Told = tuple[int, int, int]
"""Time, action, row."""


class Store(Protocol):
    """DB: stored points by the places they have in it."""

    def put(self, point: FloatArray, row: int, expires: int) -> None:
        """Store a point."""

    def remove(self, row: int) -> None:
        """Forget a point."""

    def around(self, point: FloatArray) -> tuple[list[int], int]:
        """Return the rows that a point dominates, and when the youngest that dominates it expires, 0 if none does."""
        ...


class Arrays:
    """Arrays by attribute with a free list, scanned once for each arrival, as the paper's workers do."""

    def __init__(self, stored: FrontContents, window: int) -> None:
        n, d = stored.points.shape
        room = 2 * n + 1024
        self.values = np.full((d, room), np.nan)  # comparisons with NaN are false, so an empty place dominates no point
        self.expires = np.zeros(room, np.int64)
        self.rows = np.full(room, -1)
        self.values[:, :n], self.expires[:n], self.rows[:n] = stored.points.T, stored.times + window, stored.rows
        self.at = {int(row): place for place, row in enumerate(stored.rows)}
        self.free = list(range(n, room))

    def put(self, point: FloatArray, row: int, expires: int) -> None:
        place = self.at[row] = self.free.pop()
        self.values[:, place], self.expires[place], self.rows[place] = point, expires, row

    def remove(self, row: int) -> None:
        place = self.at.pop(row)
        self.values[:, place], self.rows[place] = np.nan, -1
        self.free.append(place)

    def around(self, point: FloatArray) -> tuple[list[int], int]:
        below = np.ones(len(self.rows), np.bool_)
        above = np.ones(len(self.rows), np.bool_)
        for x, column in zip(point, self.values, strict=True):
            below &= column <= x
            above &= column >= x
        equal = below & above
        return self.rows[above & ~equal].tolist(), int(self.expires[below & ~equal].max(initial=0))


class Tree:
    """An R*-tree of libspatialindex, asked for the box below an arrival and the box above it (the index of paper 4's reference 10)."""

    def __init__(self, stored: FrontContents, window: int) -> None:
        d = stored.points.shape[1]
        self.low, self.high = [-1e9] * d, [1e9] * d
        self.points = {int(row): tuple(point) for row, point in zip(stored.rows, stored.points.tolist(), strict=True)}
        self.expires = {int(row): int(time) + window for row, time in zip(stored.rows, stored.times, strict=True)}
        properties = rtree.index.Property(dimension=d, variant=rtree.index.RT_Star)
        boxes = ((row, (*point, *point), None) for row, point in self.points.items())
        self.tree = (
            rtree.index.Index(boxes, properties=properties) if self.points else rtree.index.Index(properties=properties)
        )

    def put(self, point: FloatArray, row: int, expires: int) -> None:
        here = self.points[row] = tuple(point.tolist())
        self.expires[row] = expires
        self.tree.insert(row, (*here, *here))

    def remove(self, row: int) -> None:
        here = self.points.pop(row)
        del self.expires[row]
        self.tree.delete(row, (*here, *here))

    def around(self, point: FloatArray) -> tuple[list[int], int]:
        here = tuple(point.tolist())
        above = [row for row in self.tree.intersection((*here, *self.high)) if self.points[row] != here]
        below = (row for row in self.tree.intersection((*self.low, *here)) if self.points[row] != here)
        return above, max((self.expires[row] for row in below), default=0)


class Eager:
    """The algorithm: prune, insert, search; EL is a heap."""

    def __init__(self, store: Store, stored: FrontContents, window: int) -> None:
        self.window = window
        self.store = store
        self.waiting = {int(row) for row in stored.rows[stored.starts >= stored.clock]}
        self.there = set(stored.rows.tolist())
        self.events = [(int(time) + window, 0, int(row)) for time, row in zip(stored.times, stored.rows, strict=True)]
        starts = zip(stored.starts.tolist(), stored.rows.tolist(), strict=True)
        self.events += [(start, 1, row) for start, row in starts if row in self.waiting]
        heapq.heapify(self.events)

    def run(self, points: FloatArray, times: IntArray, rows: IntArray) -> list[Told]:
        """Return the updates that arrivals bring, one after the other."""
        return [
            told
            for point, time, row in zip(points, times.tolist(), rows.tolist(), strict=True)
            for told in self.arrive(point, time, row)
        ]

    def arrive(self, point: FloatArray, now: int, row: int) -> Iterator[Told]:
        """Yield the updates that time and this point bring."""
        yield from self._advance(now + 1)
        above, critical = self.store.around(point)
        for other in above:
            if other not in self.waiting:
                yield now, DEL, other
            self._remove(other)
        self.store.put(point, row, now + self.window)
        self.there.add(row)
        heapq.heappush(self.events, (now + self.window, 0, row))
        if critical > now:
            self.waiting.add(row)
            heapq.heappush(self.events, (critical, 1, row))
        else:
            yield now, ADD, row

    def _advance(self, until: int) -> Iterator[Told]:
        while self.events and self.events[0][0] < until:
            time, enters, row = heapq.heappop(self.events)
            if row not in self.there:
                continue
            if enters:
                self.waiting.discard(row)
                yield time, ADD, row
            else:
                self._remove(row)
                yield time, DEL, row

    def _remove(self, row: int) -> None:
        self.waiting.discard(row)
        self.there.remove(row)
        self.store.remove(row)
