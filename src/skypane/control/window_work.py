"""The work of runs of consecutive windows, in counts that cost something, and what these cost.

A run starts without state: it merges all panes of its first window, then, for each further window, the panes that the
window before it does not hold. So a run of windows that overlap is less work than its windows one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, TypeAlias


class WindowSize(NamedTuple):
    """The rows in the partials of a window, and those of them in panes that the window before it does not hold."""

    rows: int
    added: int

    @property
    def pairs(self) -> float:
        """Return the pairs of an added row and a row of the window, each once."""
        return self.added * (self.rows - self.added / 2)


class Work(NamedTuple):
    """Counts of a run, or of a part of its keys.

    runs      1: a run starts without state, and writes a file
    windows   number of windows
    added     rows that are merged with what is there
    held      rows of the windows, each window counted by itself
    pairs     pairs of an added row and a row of its window, each once
    divided   rows that are read to keep those of a part
    """

    runs: float
    windows: float
    added: float
    held: float
    pairs: float
    divided: float


Coefficients: TypeAlias = Work
"""The seconds of each count."""


@dataclass(frozen=True, slots=True)
class WindowCosts:
    """Seconds of each count, and the share of the work on keys that one key has, which no division makes smaller."""

    each: Coefficients
    hot: float = 0.0

    def share(self, parts: int) -> float:
        """Return the share of the work that the part with the hottest key has."""
        return self.hot + (1.0 - self.hot) / parts

    def seconds(self, work: Work) -> float:
        """Return the seconds of this work."""
        return dot(self.each, work)


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the sum of the products, added in order."""
    return sum(a * b for a, b in zip(one, other, strict=True))


class DueRuns:
    """The windows of a batch, in order, with the work of each run [begin, end) of them in constant time."""

    def __init__(self, sizes: Sequence[WindowSize]) -> None:
        self.sizes = tuple(sizes)
        #: sums over the windows before each one, of what it costs after the window before it
        self._added = [0, *accumulate(size.added for size in sizes)]
        self._held = [0, *accumulate(size.rows for size in sizes)]
        self._pairs = [0, *accumulate(size.pairs for size in sizes)]

    def __len__(self) -> int:
        return len(self.sizes)

    def work(self, begin: int, end: int, parts: int = 1, share: float | None = None) -> Work:
        """Return the work of one of `parts` parts of a run, which has this share of it; an equal share by default."""
        first, of = self.sizes[begin].rows, 1.0 / parts if share is None else share
        added = first + self._added[end] - self._added[begin + 1]
        pairs = first * first / 2 + self._pairs[end] - self._pairs[begin + 1]
        held = self._held[end] - self._held[begin]
        return Work(1.0, end - begin, added * of, held * of, pairs * of, float(added) if parts > 1 else 0.0)
