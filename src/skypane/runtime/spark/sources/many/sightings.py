"""When rows of inputs came, as far as a source sees that: at each look, how far the inputs reach, and when.

    look     at 10:00:00   at 10:00:02                 at 10:00:09
    end      400           500, written at 10:00:01    700: seen at 10:00:09
                           rows 400 to 500 came at 10:00:01, also if they are read an hour later

A row that a look has not found came after it: a file that was written before that was moved, or copied with its time, and
counts as seen. Rows that the first look of a process finds count as seen then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skypane.runtime.spark.sources.many.input_kind import InputExtent

_MOST: Final = 64
"""Ends of an input that are kept; with more, every other one is dropped, and its rows count as come with the next ones."""


class Sightings:
    """Keeps the ends of inputs behind what was read, each with the time at which its last row came."""

    def __init__(self) -> None:
        self._ends: dict[str, list[tuple[int, float]]] = {}
        self._looked: float | None = None

    def look(self, now: float, found: Mapping[str, InputExtent]) -> None:
        """Record the ends of inputs at the time `now`; inputs that are not there any more are forgotten."""
        self._ends = {name: self._ends.get(name, []) for name in found}
        for name, one in found.items():
            ends = self._ends[name]
            if not ends or one.last > ends[-1][0]:
                known = one.written is not None and self._looked is not None and self._looked < one.written < now
                ends.append((one.last, one.written if known and one.written is not None else now))
            if len(ends) > _MOST:
                del ends[-2::-2]
        self._looked = now

    def seen(self, read: Mapping[str, int], now: float) -> float:
        """Return when the last row came of inputs that are read up to these offsets, and forget what is before them."""
        return max((self._of(name, offset, now) for name, offset in read.items()), default=now)

    def _of(self, name: str, offset: int, now: float) -> float:
        ends = self._ends.get(name, [])
        while len(ends) > 1 and ends[0][0] < offset:
            ends.pop(0)
        return ends[0][1] if ends and ends[0][0] >= offset else now
