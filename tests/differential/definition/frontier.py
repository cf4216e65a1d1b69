"""How far a stream has come where a few clocks are ahead, from the words of skypane.progress.frontier: chunk by chunk.

A chunk is what a batch has of a pane. Its rows are between its oldest and its newest time, evenly as far as anybody knows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tests.differential.definition.ahead import Row, by_pane

FEW: Final = 8
STRETCH: Final = 8


class Chunk(NamedTuple):
    """Oldest and newest time, and number of rows."""

    oldest: int
    newest: int
    rows: int


class Frontier:
    """The newest time that a stream has reached, and the rows by which its gaps are judged."""

    def __init__(self, support: int) -> None:
        self._support = support
        self.newest: int | None = None
        self._group: list[Chunk] = []
        self._spacing: int | None = None
        self._base: int | None = None
        self._unit = 0

    def take(self, rows: Sequence[Row], came: Sequence[Row]) -> int:
        """Take the accepted rows of a batch, and all that came; return the newest time reached."""
        batch = [Chunk(mine[0].time, mine[-1].time, len(mine)) for mine in by_pane(rows).values()]
        batch.sort(key=lambda chunk: chunk.newest)
        before = self._group if len(rows) < self._support else []
        self._group = sorted([*before, *batch], key=lambda chunk: chunk.newest)
        self._measure_unit(batch)
        number = sum(chunk.rows for chunk in self._group)
        whole = number >= self._support
        spacing = (
            self._gaps(number, 4 if came and came[0].source is not None else 8)
            if whole or self._spacing is None
            else self._spacing
        )
        start = self._at((number + 1) // 2).newest if self.newest is None else self.newest
        self.newest = self._crossed(start, spacing, self._group if whole else batch)
        if number >= self._support / 2:
            followed = self._at(number + 1 - self._needed(number))
            if followed.newest > self.newest and _most_have_come(came, followed.oldest):
                self.newest = self._crossed(followed.newest, spacing, self._group)
        if whole:
            self._spacing, self._group = spacing, []
        return self.newest

    def _needed(self, number: int) -> int:
        """Return how many of so many rows must be beyond a gap: from all of half the support to three quarters of it."""
        if number < self._support:
            return math.ceil(number / 2 + self._support / 4)
        return max(math.ceil(number / 8), min(math.ceil(3 * number / 4), 3 * self._support // 2), 1)

    def _measure_unit(self, batch: list[Chunk]) -> None:
        self._base = batch[0].oldest if self._base is None else self._base
        for chunk in batch:
            for time in (chunk.oldest, chunk.newest):
                if time < batch[-1].newest:
                    self._unit = math.gcd(self._unit, time - self._base)

    def _at(self, rank: int) -> Chunk:
        """Return the chunk that has the row of a rank, from 1 on, in order of the chunks."""
        return [chunk for chunk in self._group for _ in range(chunk.rows)][rank - 1]

    def _gaps(self, number: int, part: int) -> int | None:
        """Return the longest gap of one half of the inner rows, of the half in which it is shorter; None: too few rows."""
        if number < FEW:
            return None
        places = [place for place, chunk in enumerate(self._group) for _ in range(chunk.rows)]
        edge = number // part
        low, middle, high = places[edge], places[(number + 1) // 2 - 1], places[number - edge - 1]
        return min(self._longest(low, middle), self._longest(middle, high))

    def _longest(self, first: int, last: int) -> int:
        part = self._group[first : last + 1]
        gaps = [max(chunk.rows - 1, 1) for chunk in part]
        within = [
            (chunk.newest - chunk.oldest) // number * number.bit_length()
            for chunk, number in zip(part, gaps, strict=True)
        ]
        return max(0, *within, *(after.oldest - before.newest for before, after in pairwise(part)))

    def _crossed(self, reached: int, spacing: int | None, chunks: list[Chunk]) -> int:
        short = math.inf if spacing is None else max(STRETCH * spacing, self._unit) or math.inf
        for chunk in chunks:
            if chunk.oldest - reached > short:
                break
            reached = max(reached, chunk.newest)
        return reached


def _most_have_come(came: Sequence[Row], time: int) -> bool:
    """Return whether half of the rows are from sources that have come to a time; also if no source is known."""
    newest: dict[str, int] = {}
    for row in came:
        if row.source is None:
            return True
        newest[row.source] = max(row.time, newest.get(row.source, row.time))
    return 2 * sum(newest[row.source] >= time for row in came if row.source is not None) >= len(came)
