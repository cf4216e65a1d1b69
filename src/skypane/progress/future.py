"""How far ahead of the rest a tuple may pull the newest time, and what becomes of those further ahead.

Progress follows the newest event time, so one clock in the future would close every pane; a stream that pauses for a
week, though, goes on in the future of all that was seen. The two cannot be told apart when the first such row comes,
so it is held: its pane is kept open, it moves nothing, and what comes next decides.

- A row is believed if it lies at most `max_ahead` beyond the newest time believed before it, in order of event time.
  So a batch of many days, without a gap longer than `max_ahead`, is believed as a whole: it makes no difference how
  a stream is cut into batches. The first batch starts from the lower median of its rows, which fewer than half of
  the rows cannot move into the future.
- A row further ahead is held. The stream has followed it when, since the newest time last moved, the rows that are
  held outnumber the others by `support`: a stream that has moved on moves nothing where it was. Then it goes on
  from their lower median, and they count as if nothing had been. They do so as well when the newest time comes
  within reach of them.
- They are given up, and quarantined, when `patience` rows have come in batches that moved the newest time on: the
  stream goes on without them. So what is held is bounded: by ten times `patience` where nothing decides sooner.
- A drain decides, as nothing more comes that could. A held row is believed if half of `support` rows, or half of all
  rows if those are fewer, lie where it lies or later; and so is what comes after these without a gap longer than
  `max_ahead` or four times the longest pause of the stream. The rest is given up.

Why a drain does so. Half of `support` is what the stream needs to be followed: it goes on from the lower median of so
many. So what a batch brings and a drain believes is what would have been believed had the rows come one by one: a stream
in order comes to the same, however it is cut into batches. A few rows beyond have nothing to speak for them but the
stream's own habit: after a weekend one more is no surprise, and a month is none after a week, but a year is. Rows that
came since in batches that moved the newest time speak against what is held, and are taken off its number, those too that
made the stream give up the like of it just before. Rows of one batch have no order: of a single one no drain can tell
many wrong clocks from a stream that has moved on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from skypane.progress.arrivals import Arrivals
from skypane.progress.pauses import Pauses
from skypane.types import CheckpointError, ConfigError, Length, Micros

DAY = Length(86_400_000_000)
SUPPORT = 32
PATIENCE = 10_000
_MOST = 10
_STRETCH = 4


class HeldPane(NamedTuple):
    """The rows of one pane that are held; fields as in Arrivals."""

    start: Micros
    end: Micros
    rows: int
    oldest: Micros
    newest: Micros


@dataclass(frozen=True)
class Held:
    """What lies too far ahead to be believed, and what has been said for and against it."""

    panes: tuple[HeldPane, ...] = ()
    #: Since the newest time last moved: rows that are held, and all others.
    ahead: int = 0
    others: int = 0
    #: Since the first of these rows came: rows of batches that moved the newest time.
    against: int = 0
    #: The same number for those that were given up last, if rows have been held in every batch since.
    without: int = 0

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(pane.rows for pane in self.panes)

    def arrivals(self) -> Arrivals:
        """Return the panes as arrivals."""
        if not self.panes:
            return Arrivals.none()
        return Arrivals(*np.array(self.panes, np.int64).T)

    def beyond(self, limit: Micros) -> Held:
        """Return what starts beyond `limit`."""
        return replace(self, panes=tuple(pane for pane in self.panes if pane.start > limit))

    @classmethod
    def of(cls, arrivals: Arrivals) -> Self:
        """Hold these panes; those of one start are made one."""
        if not len(arrivals):
            return cls()
        first = np.flatnonzero(np.diff(arrivals.pane_start, prepend=arrivals.pane_start[0] - 1))
        columns = (
            arrivals.pane_start[first],
            arrivals.pane_end[first],
            np.add.reduceat(arrivals.rows, first),
            np.minimum.reduceat(arrivals.oldest, first),
            np.maximum.reduceat(arrivals.newest, first),
        )
        panes = zip(*(column.tolist() for column in columns), strict=True)
        return cls(tuple(HeldPane(*pane) for pane in panes))

    def snapshot(self) -> dict[str, Any]:
        """Return the value as a JSON object."""
        return {
            "panes": [list(pane) for pane in self.panes],
            "ahead": self.ahead,
            "others": self.others,
            "against": self.against,
            "without": self.without,
        }

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the value whose snapshot() this is."""
        try:
            panes = tuple(HeldPane(*(int(value) for value in pane)) for pane in snapshot["panes"])
            # Earlier versions did not have the last one.
            without = int(snapshot.get("without", 0))
            return cls(panes, int(snapshot["ahead"]), int(snapshot["others"]), int(snapshot["against"]), without)
        except (KeyError, TypeError, ValueError) as cause:
            raise CheckpointError(f"held panes cannot be read from {snapshot!r}") from cause


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a bound says of one batch."""

    #: Panes that start beyond it are held; None without a bound.
    limit: Micros | None
    #: What is held from now on: of this batch, and of those before it.
    held: Held = Held()
    #: What was held before and is believed from now on.
    followed: Arrivals | None = None
    #: What was held before and is given up now: it is quarantined.
    given_up: Held = Held()


@dataclass(frozen=True, slots=True)
class FutureBound:
    """A limit of `max_ahead` microseconds beyond the rest, None for no limit; see above for the other two (rows)."""

    max_ahead: Micros | None = DAY
    support: int = SUPPORT
    patience: int = PATIENCE

    def __post_init__(self) -> None:
        if self.max_ahead is not None and self.max_ahead <= 0:
            raise ConfigError(f"max_ahead must be longer than 0, got {self.max_ahead} microseconds; None turns it off")
        for name in ("support", "patience"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1 row, got {getattr(self, name)}")

    def judge(self, newest: Micros | None, held: Held, arrivals: Arrivals) -> Verdict:
        """Return the verdict on a batch, given the newest time believed before it and what was held before it."""
        if self.max_ahead is None:
            return Verdict(None, followed=held.arrivals() if held.panes else None)
        if not len(arrivals):
            return Verdict(None, held)
        if newest is None:
            return _from(_lower_median(arrivals), self.max_ahead, arrivals, held)
        if not held.panes and arrivals.newest.max() <= newest + self.max_ahead:
            return Verdict(newest + self.max_ahead)  # the way of nearly every batch, at no cost
        verdict = _from(newest, self.max_ahead, arrivals, held)
        return self._weighed(newest, verdict, held, arrivals) if verdict.held.panes else verdict

    def settle(self, newest: Micros, seen: int, held: Held, pauses: Pauses) -> Verdict:
        """Return the verdict on what is held when nothing more comes, given the rows believed so far and their pauses."""
        end = self._end(newest, seen, held, pauses)
        panes = held.arrivals()
        followed = panes.only(panes.pane_start <= end)
        return Verdict(end, followed=followed if len(followed) else None, given_up=Held(held.beyond(end).panes))

    def _end(self, newest: Micros, seen: int, held: Held, pauses: Pauses) -> Micros:
        """Return the newest time that is believed when nothing more comes."""
        rows = seen + held.rows
        quorum = min((self.support + 1) // 2, (rows + 1) // 2) + held.against + held.without
        enough = min(self.support, rows // 2)
        longest, before, end = pauses.longest(enough), seen, newest
        for pane in held.panes:
            pause = pane.start - end
            vouched = rows - before >= quorum or self.max_ahead is None or pause <= self.max_ahead
            if not vouched and pause > _STRETCH * longest:
                break
            if vouched and before >= enough:
                longest = max(longest, pause)
            before, end = before + pane.rows, max(end, pane.newest)
        return end

    def _weighed(self, newest: Micros, verdict: Verdict, held: Held, arrivals: Arrivals) -> Verdict:
        """Return `verdict`, by which something is held, after a look at what speaks for and against it."""
        limit = verdict.limit
        if limit is None or self.max_ahead is None:
            return verdict
        believed = arrivals.upto(limit)
        others, ahead = believed.total, arrivals.total - believed.total
        if verdict.followed is not None or (others and believed.newest.max() > newest):
            # Rows of one batch have no order: those that came with the first held ones say nothing against them.
            votes = replace(held, ahead=0, others=0, against=held.against + others if held.panes else 0)
        else:
            votes = replace(held, ahead=held.ahead + ahead, others=held.others + others)
        counted = replace(votes, panes=verdict.held.panes)
        if counted.ahead - counted.others >= self.support:
            return _from(_lower_median(counted.arrivals()), self.max_ahead, arrivals, held)
        before = held.beyond(limit)
        if before.rows and (counted.against >= self.patience or before.rows >= _MOST * self.patience):
            fresh = Held.of(arrivals.only(arrivals.pane_start > limit))
            still = replace(fresh, without=counted.against) if fresh.panes else fresh
            return replace(verdict, held=still, given_up=before)
        return replace(verdict, held=counted)


def _from(start: Micros, max_ahead: Micros, arrivals: Arrivals, held: Held) -> Verdict:
    """Return the verdict where the stream is at `start`; nothing has been said yet of what is held."""
    before = held.arrivals()
    # A pane that both have is one: else it would lead by twice as much where its rows come in two batches.
    both = Held.of(before.union(arrivals)).arrivals()
    limit = _reach(start, max_ahead, both) + max_ahead
    followed = before.only(before.pane_start <= limit)
    return Verdict(limit, Held.of(both.only(both.pane_start > limit)), followed if len(followed) else None)


def _lower_median(arrivals: Arrivals) -> Micros:
    """Return the pane start at or below which half of the rows lie; there is at least one row."""
    cumulative = np.cumsum(arrivals.rows)
    return int(arrivals.pane_start[np.searchsorted(cumulative, (cumulative[-1] + 1) // 2)])


def _reach(start: Micros, max_ahead: Micros, arrivals: Arrivals) -> Micros:
    """Return the newest time that is believed when each pane may lead by `max_ahead` those before it."""
    reach = start
    ahead = arrivals.newest > start
    for pane_start, newest in zip(arrivals.pane_start[ahead].tolist(), arrivals.newest[ahead].tolist(), strict=True):
        if pane_start > reach + max_ahead:
            break
        reach = max(reach, min(newest, reach + max_ahead))
    return reach
