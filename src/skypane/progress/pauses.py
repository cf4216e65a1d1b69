"""How long event time has gone without a row: by it a drain tells a stream that pauses from a clock that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skypane.progress.arrivals import Arrivals
from skypane.types import CheckpointError, Micros


@dataclass(frozen=True)
class Pauses:
    """The longest pauses of a stream, each with the number of rows that had come before it.

    A pause lies between the newest time and the start of the next pane with a row. One after few rows says little: it
    may be the first row that is wrong, not the last. So those are kept that are longer than any after more rows.

    >>> from skypane.windows import Windows
    >>> pauses = Pauses().after(10, 5, Arrivals.of_times([31, 52, 55], Windows(10, 10)), most=32)
    >>> pauses.longest(5), pauses.longest(6), pauses.longest(7)
    (20, 19, 0)
    """

    #: Rows before the pause, ascending, and its length in microseconds, descending.
    records: tuple[tuple[int, Micros], ...] = ()

    def longest(self, rows: int) -> Micros:
        """Return the longest pause before which at least `rows` rows had come; 0 if there was none."""
        return next((length for before, length in self.records if before >= rows), 0)

    def after(self, newest: Micros | None, seen: int, arrivals: Arrivals, most: int) -> Self:
        """Return the pauses after these rows, of which none is held, where `seen` rows came before, up to `newest`.

        Rows before a pause are counted up to `most`, so that no more than that many records are kept.
        """
        found = list(_found(newest, seen, arrivals, most))
        return type(self)(_longest((*self.records, *found))) if found else self

    def snapshot(self) -> list[list[int]]:
        """Return the value as a JSON array."""
        return [list(record) for record in self.records]

    @classmethod
    def restored(cls, snapshot: Any) -> Self:
        """Return the value whose snapshot() this is."""
        try:
            return cls(tuple((int(before), int(length)) for before, length in snapshot))
        except (TypeError, ValueError) as cause:
            raise CheckpointError(f"the pauses of the stream cannot be read from {snapshot!r}") from cause


def _found(newest: Micros | None, seen: int, arrivals: Arrivals, most: int) -> Iterator[tuple[int, Micros]]:
    """Yield rows before and length of each pause of a batch; of those after `most` rows and more the longest alone."""
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
    """Return the records that are longer than any with as many rows or more, ascending in rows."""
    kept: list[tuple[int, Micros]] = []
    for before, length in sorted(records, reverse=True):
        if not kept or length > kept[-1][1]:
            kept.append((before, length))
    return tuple(reversed(kept))
