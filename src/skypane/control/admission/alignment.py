"""Shares of a budget of rows that read inputs in step by event time, so that a backlog does not make rows late.

Max-min shares read as many rows of a small input as of a large one, and so further in event time: the large one's rows
are then late, although the stream was in order. Here the inputs that are behind in event time are read first, up to the
latest time that the budget allows for all of them; inputs that are level share what is left by max-min fairness. Flink's
watermark alignment pauses sources that are ahead for the same purpose.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from skypane.control.admission.sharing import fair_shares
from skypane.types import Micros

LEAST = 20
"""One row in so many is for inputs that are far ahead, whatever their event times."""
BATCHES = 1_000
"""Batches like the present one, by the event time that it covers, beyond which an input is far ahead."""


@dataclass(frozen=True, slots=True)
class TimesAhead:
    """Estimated event times of the rows that wait at an input, in order; the time between two estimates is linear.

    rows    positions ahead of the next row, ascending from 0
    times   the event time at each, int64, in a unit that all inputs share; a time never lies before an earlier one

    >>> TimesAhead.of({0: 100, 10: 200}).until(150)
    6
    """

    rows: tuple[int, ...]
    times: tuple[Micros, ...]

    @classmethod
    def of(cls, estimates: Mapping[int, Micros]) -> TimesAhead:
        """Return the times of estimates by position; a row after a later one counts as if it had that time."""
        rows = tuple(sorted(estimates))
        return cls(rows, tuple(accumulate((estimates[row] for row in rows), max)))

    def extended(self, count: int) -> TimesAhead:
        """Return the same for all of `count` rows, at the rate of the nearest two estimates; alone, an estimate is for all."""
        if len(self.rows) < 2:
            return TimesAhead((0,), self.times)
        ends = {0: self._beyond(0, 1, 0), count - 1: self._beyond(-1, -2, count - 1)}
        inner = {row: time for row, time in zip(self.rows, self.times, strict=True) if 0 <= row < count}
        return TimesAhead.of(ends | inner)

    def _beyond(self, near: int, next_: int, row: int) -> Micros:
        length, passed = self.rows[next_] - self.rows[near], self.times[next_] - self.times[near]
        return self.times[near] + (row - self.rows[near]) * passed // length

    def at(self, row: int) -> Micros:
        """Return the event time at a position from 0 on; the last estimate holds for all rows beyond it."""
        after = bisect_right(self.rows, row)
        if after == len(self.rows):
            return self.times[-1]
        return self._beyond(after - 1, after, row)

    def until(self, time: Micros) -> int | None:
        """Return how many rows come up to `time`, which includes the rows at it; None: all rows that wait."""
        at = bisect_right(self.times, time)
        if at == 0:
            return 0
        if at == len(self.times):
            return None
        passed, length = time - self.times[at - 1], self.times[at] - self.times[at - 1]
        return self.rows[at - 1] + passed * (self.rows[at] - self.rows[at - 1]) // length + 1


def aligned_shares(
    wanted: Mapping[str, int], ahead: Mapping[str, TimesAhead], budget: int, turn: int = 0
) -> dict[str, int]:
    """Return the number of rows of each input, at most its request, and at most `budget` in all.

    ahead   the event times of the inputs of which they are known. The others get their max-min fair share.
    turn    the rows requested so far, the budgets of earlier calls: it rotates remainders, as in fair_shares()

    An input so far ahead that a thousand batches like this one would not reach it gets its share of a twentieth of the
    budget: its clock may be off, or that of an input that is behind. So an input is read in every batch, or in at most
    as many batches as bring the others to its time. If the budget is at least a row per input, the newest row that is
    read and the oldest one that is left are no further apart than by fair_shares().
    """
    fair = fair_shares(wanted, budget, turn)
    known = {name: wanted[name] for name in sorted(wanted) if name in ahead}
    left = sum(fair[name] for name in known)
    if sum(known.values()) <= left:
        return fair
    times = {name: ahead[name] for name in known}
    level = _level(known, times, left, {})
    far = level + BATCHES * max(level - min(one.times[0] for one in times.values()), 0)
    far_ahead = {name: rows for name, rows in known.items() if times[name].times[0] > far}
    least = fair_shares(far_ahead, min((turn + budget) // LEAST - turn // LEAST, left), turn // LEAST)
    level = _level(known, times, left, least)
    shares, beyond = _upto(known, times, level, least), _upto(known, times, level + 1, least)
    more = {name: rows for name in known if (rows := beyond[name] - shares[name])}
    rest = fair_shares(more, left - sum(shares.values()), turn)
    return fair | {name: shares[name] + rest.get(name, 0) for name in known}


def _level(rows: Mapping[str, int], ahead: Mapping[str, TimesAhead], budget: int, least: Mapping[str, int]) -> Micros:
    """Return the latest time up to which the inputs can be read within the budget, which is less than all rows."""
    low, high = min(one.times[0] for one in ahead.values()) - 1, max(one.times[-1] for one in ahead.values())
    while high - low > 1:  # the rows up to low are within the budget, those up to high are not
        middle = (low + high) // 2
        low, high = (middle, high) if sum(_upto(rows, ahead, middle, least).values()) <= budget else (low, middle)
    return low


def _upto(
    rows: Mapping[str, int], ahead: Mapping[str, TimesAhead], time: Micros, least: Mapping[str, int]
) -> dict[str, int]:
    """Return how many of its rows each input has up to a time, or its least number, if that is more."""
    counts = {name: ahead[name].until(time) for name in rows}
    return {
        name: max(least.get(name, 0), count if count is not None and count < rows[name] else rows[name])
        for name, count in counts.items()
    }
