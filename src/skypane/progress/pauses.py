"""Pauses in event time, by which a drain distinguishes a stream that pauses from a wrong clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skypane.progress.pane_arrivals import PaneArrivals
from skypane.types import CheckpointError, Micros


@dataclass(frozen=True)
class Pauses:
    """The longest pauses of a stream, each with the number of rows before it.

    A pause lies between the newest time and the start of the next pane with a row. A pause after few rows is weak
    evidence, since the first row may be the wrong one. So a pause is kept if it is longer than all pauses after more
    rows.

    >>> from skypane.windows import Windows
    >>> pauses = Pauses().after(10, 5, PaneArrivals.of_times([31, 52, 55], Windows(10, 10)), most=32)
    >>> pauses.longest(5), pauses.longest(6), pauses.longest(7)
    (20, 19, 0)
    """

    #: Rows before the pause, ascending, and its length in microseconds, descending.
    records: tuple[tuple[int, Micros], ...] = ()

    def longest(self, rows: int) -> Micros:
        """Return the longest pause after at least `rows` rows; 0 if there is none."""
        return next((length for before, length in self.records if before >= rows), 0)

    def after(self, newest: Micros | None, seen: int, arrivals: PaneArrivals, most: int) -> Self:
        """Return the pauses after a batch without held rows; `seen` rows came before it, up to `newest`.

        Rows before a pause are counted up to `most`, which bounds the number of records.
        """
        found = list(_found(newest, seen, arrivals, most))
        return type(self)(_longest((*self.records, *found))) if found else self

    def snapshot(self) -> list[list[int]]:
        """Return the value as a JSON array."""
        return [list(record) for record in self.records]

    @classmethod
    def restored(cls, snapshot: Any) -> Self:
        """Return the value that snapshot() wrote."""
        try:
            return cls(tuple((int(before), int(length)) for before, length in snapshot))
        except (TypeError, ValueError) as cause:
            raise CheckpointError(f"the pauses of the stream cannot be read from {snapshot!r}") from cause


def _found(newest: Micros | None, seen: int, arrivals: PaneArrivals, most: int) -> Iterator[tuple[int, Micros]]:
    """Yield rows before and length of each pause of a batch; of pauses after `most` or more rows only the longest."""
    first = arrivals.pane_start[0] if newest is None else newest
    reach = np.maximum.accumulate(np.append(first, arrivals.newest[:-1]))
    length = arrivals.pane_start - reach
    before = seen + np.cumsum(arrivals.rows) - arrivals.rows
    many = before >= most
    longest = int(length[many].max(initial=0))
    early = ~many & (length > 0)
    yield from zip(before[early].tolist(), length[early].tolist(), strict=True)
    if longest:
        yield most, longest


def _longest(records: Iterable[tuple[int, Micros]]) -> tuple[tuple[int, Micros], ...]:
    """Return the records that are longer than all with as many rows or more, ascending in rows."""
    kept: list[tuple[int, Micros]] = []
    for before, length in sorted(records, reverse=True):
        if not kept or length > kept[-1][1]:
            kept.append((before, length))
    return tuple(reversed(kept))
