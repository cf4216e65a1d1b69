"""Limit on how far a tuple may advance the newest time, and what becomes of rows beyond the limit.

Progress follows the newest event time, so one clock in the future would close every pane. But a stream that pauses for
a week also continues in the future of all earlier rows. The first such row does not show which case it is, so it is
held: its pane stays open, it does not move the punctuation, and later rows decide.

- A row is accepted if it lies at most `max_ahead` beyond the newest time accepted before it, in order of event time. So
  a batch of many days is accepted as a whole if it has no gap longer than `max_ahead`; how a stream is cut into batches
  makes no difference. The first batch starts from the lower median of its rows, which less than half of the rows cannot
  move into the future.
- A row further ahead is held. The stream follows the held rows when, since the newest time last moved, they outnumber
  the other rows by `support`, because a stream that has moved on no longer moves its old newest time. Progress
  continues from the lower median of the held rows, and they count as ordinary rows. They are also accepted when the
  newest time comes within `max_ahead` of them.
- Held rows are quarantined when `patience` rows have come in batches that moved the newest time: the stream continues
  without them. So the number of held rows is bounded, by ten times `patience` if nothing decides sooner.
- A drain decides at once, since no more rows come. A held row is accepted if half of `support` rows, or half of all
  rows if those are fewer, lie at its time or later. Rows that follow these without a gap longer than `max_ahead` or
  four times the longest pause of the stream are accepted too. The others are quarantined.

Why a drain decides so: half of `support` rows suffice for the stream to be followed, since it continues from the lower
median. A drain therefore accepts what would have been accepted had the rows of a batch come one by one, and a stream in
order gives the same result however it is cut into batches. For fewer rows, only the stream's own pauses are evidence:
after a weekend, another weekend is plausible; after a week, a month is, but a year is not. Rows that came since in
batches that moved the newest time are evidence against the held rows and are subtracted from their number, including
those that led to the quarantine of similar rows just before. Rows of one batch have no order, so for a single batch no
drain can distinguish many wrong clocks from a stream that has moved on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.pauses import Pauses
from skypane.snapshots import ADDED, JsonState
from skypane.types import ConfigError, Length, Micros

DAY = Length(86_400_000_000)
SUPPORT = 32
PATIENCE = 10_000
_MOST = 10
_STRETCH = 4


class HeldPane(NamedTuple):
    """Held rows of one pane; fields as in PaneArrivals."""

    start: Micros
    end: Micros
    rows: int
    oldest: Micros
    newest: Micros


@dataclass(frozen=True)
class HeldPanes(JsonState):
    """The held panes, and the rows that count for and against them."""

    panes: tuple[HeldPane, ...] = ()
    #: Held rows, and all other rows, since the newest time last moved.
    ahead: int = 0
    others: int = 0
    #: Rows of batches that moved the newest time, since the first of the held rows.
    against: int = 0
    #: The value of `against` when rows were last quarantined, if rows have been held in every batch since.
    without: int = field(default=0, metadata=ADDED)

    @property
    def rows(self) -> int:
        """Number of held rows."""
        return sum(pane.rows for pane in self.panes)

    def arrivals(self) -> PaneArrivals:
        """Return the panes as arrivals."""
        if not self.panes:
            return PaneArrivals.none()
        return PaneArrivals(*np.array(self.panes, np.int64).T)

    def beyond(self, limit: Micros) -> HeldPanes:
        """Return the panes that start beyond `limit`."""
        return replace(self, panes=tuple(pane for pane in self.panes if pane.start > limit))

    def within(self, limit: Micros) -> HeldPanes:
        """Return the panes that start at `limit` or before, without any counts for or against them."""
        return HeldPanes(tuple(pane for pane in self.panes if pane.start <= limit))

    @classmethod
    def of(cls, arrivals: PaneArrivals) -> Self:
        """Return these panes as held panes; panes with the same start are merged."""
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


@dataclass(frozen=True, slots=True)
class FutureDecision:
    """Decision of a bound on one batch."""

    #: Panes that start beyond the limit are held; None without a bound.
    limit: Micros | None
    #: Panes that are held from now on, of this batch and earlier ones.
    held: HeldPanes = HeldPanes()
    #: Panes that were held and are accepted now.
    followed: HeldPanes = HeldPanes()
    #: Panes that were held and whose rows are quarantined now.
    abandoned: HeldPanes = HeldPanes()


@dataclass(frozen=True, slots=True)
class FutureBound:
    """Bound on rows in the future.

    max_ahead   how far beyond the rest a row may lie, in microseconds; None: no limit
    support     by how many rows the held ones must outnumber the others before the stream follows them
    patience    after how many rows of a stream that continues without them the held ones are quarantined
    """

    max_ahead: Micros | None = DAY
    support: int = SUPPORT
    patience: int = PATIENCE

    def __post_init__(self) -> None:
        if self.max_ahead is not None and self.max_ahead <= 0:
            raise ConfigError(f"max_ahead must be longer than 0, got {self.max_ahead} microseconds; None turns it off")
        for name in ("support", "patience"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1 row, got {getattr(self, name)}")

    def judge(self, newest: Micros | None, held: HeldPanes, arrivals: PaneArrivals) -> FutureDecision:
        """Return the decision on a batch, given the newest time accepted before it and the panes held before it."""
        if self.max_ahead is None:
            return FutureDecision(None, followed=HeldPanes(held.panes))
        if not len(arrivals):
            return FutureDecision(None, held)
        if newest is None:
            return _from(_lower_median(arrivals), self.max_ahead, arrivals, held)
        if not held.panes and arrivals.newest.max() <= newest + self.max_ahead:
            return FutureDecision(newest + self.max_ahead)  # fast path of nearly every batch
        verdict = _from(newest, self.max_ahead, arrivals, held)
        return self._weighed(newest, verdict, held, arrivals) if verdict.held.panes else verdict

    def settle(self, newest: Micros, seen: int, held: HeldPanes, pauses: Pauses) -> FutureDecision:
        """Return the decision of a drain on the held panes, given the number of accepted rows and their pauses."""
        end = self._end(newest, seen, held, pauses)
        return FutureDecision(end, followed=held.within(end), abandoned=HeldPanes(held.beyond(end).panes))

    def _end(self, newest: Micros, seen: int, held: HeldPanes, pauses: Pauses) -> Micros:
        """Return the newest time that a drain accepts."""
        rows = seen + held.rows
        quorum = min((self.support + 1) // 2, (rows + 1) // 2) + held.against + held.without
        enough = min(self.support, rows // 2)
        longest, before, end = pauses.longest(enough), seen, newest
        for pane in held.panes:
            pause = pane.start - end
            supported = rows - before >= quorum or self.max_ahead is None or pause <= self.max_ahead
            if not supported and pause > _STRETCH * longest:
                break
            if supported and before >= enough:
                longest = max(longest, pause)
            before, end = before + pane.rows, max(end, pane.newest)
        return end

    def _weighed(
        self, newest: Micros, verdict: FutureDecision, held: HeldPanes, arrivals: PaneArrivals
    ) -> FutureDecision:
        """Return `verdict`, in which panes are held, corrected by the rows that count for and against them."""
        limit = verdict.limit
        if limit is None or self.max_ahead is None:
            return verdict
        accepted = arrivals.upto(limit)
        others, ahead = accepted.total, arrivals.total - accepted.total
        if verdict.followed.panes or (others and accepted.newest.max() > newest):
            # Rows of one batch have no order: those that came with the first held ones do not count against them.
            votes = replace(held, ahead=0, others=0, against=held.against + others if held.panes else 0)
        else:
            votes = replace(held, ahead=held.ahead + ahead, others=held.others + others)
        counted = replace(votes, panes=verdict.held.panes)
        if counted.ahead - counted.others >= self.support:
            return _from(_lower_median(counted.arrivals()), self.max_ahead, arrivals, held)
        before = held.beyond(limit)
        if before.rows and (counted.against >= self.patience or before.rows >= _MOST * self.patience):
            fresh = HeldPanes.of(arrivals.only(arrivals.pane_start > limit))
            still = replace(fresh, without=counted.against) if fresh.panes else fresh
            return replace(verdict, held=still, abandoned=before)
        return replace(verdict, held=counted)


def _from(start: Micros, max_ahead: Micros, arrivals: PaneArrivals, held: HeldPanes) -> FutureDecision:
    """Return the decision if the stream is at `start`, without any counts for or against the held panes."""
    # Panes that occur in both are merged; otherwise one whose rows come in two batches could advance twice as far.
    both = HeldPanes.of(held.arrivals().union(arrivals)).arrivals()
    limit = _reach(start, max_ahead, both) + max_ahead
    return FutureDecision(limit, HeldPanes.of(both.only(both.pane_start > limit)), held.within(limit))


def _lower_median(arrivals: PaneArrivals) -> Micros:
    """Return the smallest pane start at or below which half of the rows lie; there must be at least one row."""
    cumulative = np.cumsum(arrivals.rows)
    return int(arrivals.pane_start[np.searchsorted(cumulative, (cumulative[-1] + 1) // 2)])


def _reach(start: Micros, max_ahead: Micros, arrivals: PaneArrivals) -> Micros:
    """Return the newest accepted time if each pane may lie up to `max_ahead` beyond the panes before it."""
    reach = start
    ahead = arrivals.newest > start
    for pane_start, newest in zip(arrivals.pane_start[ahead].tolist(), arrivals.newest[ahead].tolist(), strict=True):
        if pane_start > reach + max_ahead:
            break
        reach = max(reach, min(newest, reach + max_ahead))
    return reach
