"""How far a stream has come, whatever a few clocks that are ahead of the others show.

With tmax, the newest time of any row, one clock of a hundred that is an hour ahead moves the punctuation by an hour, and
the rows of the other clocks are late until they have caught up. So tmax follows rows that continue the stream, and rows
beyond a gap move it only when the stream has followed them. Until then they are rows of panes that are open for longer.

- The *spacing* of a stream is the longest gap between neighbours among its last rows, ordered by time, without the
  oldest and the newest eighth. It is measured on both sides of the median, and the smaller value applies: clocks that
  are ahead or behind make a gap on one side only. If the sources are known, some may be ahead and others behind, which
  have an eighth of few rows each by chance: then it is measured without the oldest and the newest quarter. The
  longest gap within a pane, of which only the number of rows and their span are known, is estimated from these.
- tmax advances over gaps of up to `STRETCH` spacings, or of one unit in which times are given, such as a second.
- It advances over any gap once enough of the last rows are beyond it: all rows if there are half of `support`, three
  quarters of `support` and more, an eighth of many. So a stream that pauses continues with the first rows after the
  pause. A small batch costs little time if it has to be waited for, so it may be careful; a large one may span a pause,
  or several. If the sources are known, those that have come as far must also have half of the batch's rows: after a
  pause all have, and clocks that are ahead have not.

The last rows are those of a batch, or of as many batches as have `support` rows; while fewer have come, of these. Until
`FEW` rows are known, every gap is short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from skypane.progress.pane_arrivals import PaneArrivals, SourceCount
from skypane.snapshots import JsonState
from skypane.types import IntArray, Micros

FEW = 8
STRETCH = 8
_EDGE, _EDGE_OF_SOURCES = 8, 4


class RecentPane(NamedTuple):
    """Oldest and newest time (microseconds) and number of the rows of a pane."""

    oldest: Micros
    newest: Micros
    rows: int


@dataclass(frozen=True)
class Frontier(JsonState):
    """The newest time of a stream, as far as its gaps determine it (microseconds).

    spacing   the spacing of the last complete group of rows; None: there is no group yet
    recent    oldest and newest time and number of rows of the panes of the incomplete group
    base      the time of some row, and `unit`, the greatest common divisor of the distances of others to it
    """

    spacing: Micros | None = None
    recent: tuple[RecentPane, ...] = ()
    base: Micros | None = None
    unit: Micros = 0

    def after(self, newest: Micros | None, arrivals: PaneArrivals, support: int) -> tuple[Micros, Self]:
        """Return tmax and the frontier after a batch of at least one row, given the tmax before it.

        `support` is the least number of rows by which the stream is judged.
        """
        group = _joined(self.recent if arrivals.total < support else (), arrivals)
        rows = int(group.rows.sum())
        complete = rows >= support
        edge = _EDGE_OF_SOURCES if arrivals.sources else _EDGE
        spacing = _spacing(group, edge) if complete or self.spacing is None else self.spacing
        base = int(arrivals.oldest[0]) if self.base is None else self.base
        unit = _unit(self.unit, base, arrivals)
        most = max(STRETCH * spacing, unit) if spacing is not None else 0
        start = int(group.newest[_pane_at(group, (rows + 1) // 2)]) if newest is None else newest
        reach = _reach(start, most or None, group if complete else arrivals)
        if 2 * rows >= support:
            pane = _pane_at(group, rows + 1 - _needed(rows, support))
            followed = int(group.newest[pane])
            if followed > reach and _have_come(arrivals.sources, int(group.oldest[pane])):
                reach = _reach(followed, most or None, group)
        if complete:
            return reach, replace(self, spacing=spacing, recent=(), base=base, unit=unit)
        panes = zip(group.oldest.tolist(), group.newest.tolist(), group.rows.tolist(), strict=True)
        return reach, replace(self, recent=tuple(RecentPane(*pane) for pane in panes), base=base, unit=unit)


class _Group(NamedTuple):
    """Panes in ascending order of their newest time: int64 arrays of equal length."""

    oldest: IntArray
    newest: IntArray
    rows: IntArray


def _joined(recent: tuple[RecentPane, ...], arrivals: PaneArrivals) -> _Group:
    if not recent:
        return _Group(arrivals.oldest, arrivals.newest, arrivals.rows)
    columns = np.array(recent, np.int64).T
    oldest, newest, rows = (
        np.concatenate(pair) for pair in zip(columns, (arrivals.oldest, arrivals.newest, arrivals.rows), strict=True)
    )
    order = np.argsort(newest, kind="stable")
    return _Group(oldest[order], newest[order], rows[order])


def _unit(unit: Micros, base: Micros, arrivals: PaneArrivals) -> Micros:
    """Return the greatest common divisor of `unit` and the distances of the batch's times to `base`."""
    if unit == 1:
        return unit
    last = arrivals.newest.max()  # may be a bound instead of a row's time
    times = np.concatenate([arrivals.oldest, arrivals.newest])
    return int(np.gcd.reduce(times[times < last] - base, initial=unit))


def _pane_at(group: _Group, rank: int) -> int:
    """Return the index of the pane that has the row of this rank, from 1 on, in order of time."""
    return int(np.searchsorted(np.cumsum(group.rows), rank))


def _needed(rows: int, support: int) -> int:
    """Return how many of these rows, at least half of `support`, must be beyond a gap for tmax to cross it.

    All of half of `support` are as unlikely to be from clocks that are ahead as three quarters of `support` are: if three
    clocks of ten are ahead, 16 of 16 rows have a probability of 4e-9, and 24 of 32 one of 2e-7.
    """
    most_of_few = -(-max(2 * rows + support, 3 * rows) // 4)
    return max(-(-rows // 8), min(most_of_few, 3 * support // 2), 1)


def _have_come(sources: Mapping[str, SourceCount], time: Micros) -> bool:
    """Return whether sources with half of a batch's rows have reached `time`, or the sources are not known."""
    rows = sum(source.rows for source in sources.values())
    return 2 * sum(source.rows for source in sources.values() if source.newest >= time) >= rows


def _spacing(group: _Group, edge: int) -> Micros | None:
    """Return the spacing of the rows of a group without the oldest and newest 1/`edge`; None: fewer rows than FEW."""
    rows = int(group.rows.sum())
    if rows < FEW:
        return None
    low, middle, high = (_pane_at(group, rank) for rank in (rows // edge + 1, (rows + 1) // 2, rows - rows // edge))
    return min(_longest(group, low, middle), _longest(group, middle, high))


def _longest(group: _Group, first: int, last: int) -> Micros:
    """Return the longest gap between panes `first` to `last`, or of rows at random times within one of them.

    On average the longest of n such gaps is as long as 1 + 1/2 + ... + 1/n mean ones, and n has at least as many bits.
    """
    panes = slice(first, last + 1)
    oldest, newest, rows = group.oldest[panes], group.newest[panes], group.rows[panes]
    between = oldest[1:] - np.maximum.accumulate(newest)[:-1]
    gaps = np.maximum(rows - 1, 1)
    bits = np.frexp(gaps)[1]
    within = (newest - oldest) // gaps * bits
    return int(max(between.max(initial=0), within.max(initial=0)))


def _reach(start: Micros, most: Micros | None, group: _Group | PaneArrivals) -> Micros:
    """Return the newest time that is reached from `start` over gaps of at most `most`."""
    newest = group.newest
    if most is None or newest[-1] <= start + most:
        return max(start, int(newest.max()))
    reached = np.maximum.accumulate(np.append(start, newest))
    too_far = np.flatnonzero(group.oldest - reached[:-1] > most)
    return int(reached[too_far[0]]) if len(too_far) else int(reached[-1])
