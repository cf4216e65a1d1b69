"""What becomes of rows far ahead of the rest, from the words of the bound (`max_ahead`, `support`, `patience`): row by row.

The words go by panes: a row is where its pane begins, and moves the stream no further than the limit behind which rows are held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

DAY: Final = 86_400_000_000
SUPPORT: Final = 32
PATIENCE: Final = 10_000
_MOST: Final = 10
_STRETCH: Final = 4


class Row(NamedTuple):
    """A row that has a time and all that is required: where its pane begins, its time, its place in the case, its source."""

    pane: int
    time: int
    place: int
    source: str | None = None


class Verdict(NamedTuple):
    """For a batch, or a drain: rows that are accepted from now on, and those of earlier batches that are abandoned."""

    believed: list[Row]
    given_up: list[Row]


class Ahead:
    """The rows that are held, and the evidence for and against them."""

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        self.max_ahead: int | None = numbers.get("max_ahead", DAY)
        self.support = int(numbers.get("support", SUPPORT))
        self.patience = int(numbers.get("patience", PATIENCE))
        self._hold([])

    def _hold(self, rows: list[Row], without: int = 0) -> None:
        """Hold rows without evidence yet."""
        self.held = rows
        self.ahead = self.others = 0  # since the newest time last moved: rows that are held, and all others
        self.against = 0  # since the first of these came: rows of batches that moved the newest time
        self.without = without  # the same of those that were abandoned just before

    def taken(self, reached: int | None, rows: list[Row]) -> Verdict:
        """Take the rows of a batch, one at least; `reached`: how far the stream has come, None before the first."""
        if self.max_ahead is None:
            return Verdict(rows, [])
        both = [*self.held, *rows]
        limit = self._limit(_lower_median(rows) if reached is None else reached, both)
        if reached is None or not _beyond(both, limit):
            return self._follow(both, limit)
        self._count(reached, limit, rows)
        if self.ahead - self.others >= self.support:
            return self._follow(both, self._limit(_lower_median(_beyond(both, limit)), both))
        waiting, fresh = _beyond(self.held, limit), _beyond(rows, limit)
        if waiting and (self.against >= self.patience or len(waiting) >= _MOST * self.patience):
            self._hold(fresh, without=self.against if fresh else 0)
            return Verdict(_upto(both, limit), waiting)
        self.held = [*waiting, *fresh]
        return Verdict(_upto(both, limit), [])

    def _follow(self, rows: list[Row], limit: int) -> Verdict:
        self._hold(_beyond(rows, limit))
        return Verdict(_upto(rows, limit), [])

    def _count(self, reached: int, limit: int, rows: list[Row]) -> None:
        """Count a batch for what is held, or against it."""
        others = _upto(rows, limit)
        if len(_beyond(self.held, limit)) < len(self.held) or any(row.time > reached for row in others):
            self.ahead = self.others = 0
            self.against += len(others) if self.held else 0
        else:
            self.ahead += len(rows) - len(others)
            self.others += len(others)

    def _limit(self, start: int, rows: list[Row]) -> int:
        """Return where rows begin to be too far ahead: in order of event time each may lead by `max_ahead` those before it."""
        assert self.max_ahead is not None
        reach = start
        for pane, newest, _ in _panes(rows):
            if newest > start and pane > reach + self.max_ahead:
                break
            reach = max(reach, min(newest, reach + self.max_ahead))
        return reach + self.max_ahead

    def settled(self, reached: int, seen: int, pauses: Pauses) -> Verdict:
        """Decide on what is held, as nothing more comes; `seen`: rows accepted so far."""
        end = self._end(reached, seen, pauses)
        verdict = Verdict([row for row in self.held if row.pane <= end], _beyond(self.held, end))
        self._hold([])
        return verdict

    def _end(self, reached: int, seen: int, pauses: Pauses) -> int:
        """Return the newest accepted time."""
        rows = seen + len(self.held)
        needed = min((self.support + 1) // 2, (rows + 1) // 2) + self.against + self.without
        enough = min(self.support, rows // 2)
        longest, before, end = pauses.longest(enough), seen, reached
        for pane, newest, count in _panes(self.held):
            pause = pane - end
            by_number = rows - before >= needed or self.max_ahead is None or pause <= self.max_ahead
            if not by_number and pause > _STRETCH * longest:
                break
            if by_number and before >= enough:
                longest = max(longest, pause)
            before, end = before + count, max(end, newest)
        return end


class Pauses:
    """The pauses of a stream: from the newest time to where the next pane with a row begins, each with the rows before it."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int]] = []

    def take(self, newest: int | None, seen: int, rows: Sequence[Row]) -> None:
        """Take accepted rows; `seen` came before them, up to `newest`."""
        reach = newest
        for pane, last, count in _panes(rows):
            if reach is not None and pane > reach:
                self._found.append((seen, pane - reach))
            reach = last if reach is None else max(reach, last)
            seen += count

    def longest(self, rows: int) -> int:
        """Return the longest pause before which at least `rows` rows had come; 0: there was none."""
        return max((length for before, length in self._found if before >= rows), default=0)


def by_pane(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Return the rows of each pane, by where it begins, oldest first."""
    found: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.time):
        found.setdefault(row.pane, []).append(row)
    return found


def _panes(rows: Sequence[Row]) -> list[tuple[int, int, int]]:
    """Return where each pane begins, oldest first, its newest time, and how many rows it has."""
    return [(pane, mine[-1].time, len(mine)) for pane, mine in by_pane(rows).items()]


def _beyond(rows: list[Row], limit: int) -> list[Row]:
    return [row for row in rows if row.pane > limit]


def _upto(rows: list[Row], limit: int) -> list[Row]:
    """Return the rows that are not beyond the limit, none with a time beyond it."""
    return [row._replace(time=min(row.time, limit)) for row in rows if row.pane <= limit]


def _lower_median(rows: list[Row]) -> int:
    panes = sorted(row.pane for row in rows)
    return panes[(len(panes) + 1) // 2 - 1]
