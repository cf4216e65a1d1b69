"""How far ahead of the rest a tuple may pull the newest time (design, "Time").

Progress follows the newest event time, so one clock in the future would close every pane. FutureBound decides, from
a batch's panes and two numbers of state, beyond which time a row is put aside:

- A row is believed if it lies at most `max_ahead` beyond the newest time believed before it, in order of event time.
  So a batch of many days, without a gap longer than `max_ahead`, is believed as a whole: it makes no difference how
  a stream is cut into batches.
- The first batch has no newest time yet; it starts from the lower median of its rows, which fewer than half of
  the rows cannot move into the future.
- Rows beyond the limit vote for a jump, rows within it vote against: votes = max(0, votes + beyond - within). At
  `support` votes the stream is taken to have moved as a whole, and the lower median of the rows beyond becomes the
  point to start from. This is Boyer and Moore's majority vote: it needs one number, and it asks that the rows beyond
  outnumber the others by `support` since they last were level, in one batch or in many.

    what happens                              outcome
    one clock in the future, or a minority    its rows are put aside, all of them; nothing else changes
    the stream stands still for a week        rows are put aside until `support` of them have come, then it goes on
    rows further apart than max_ahead, always support - 1 of support rows are put aside: choose a longer max_ahead
    `support` more bad rows than good ones    they win; the good ones are late from then on (counted, never silent)
    half or more of the first batch is bad    as above; a bound cannot know better, start again from a new checkpoint
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skypane.progress.arrivals import Arrivals
from skypane.types import ConfigError, Length, Micros

DAY = Length(86_400_000_000)
SUPPORT = 32


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a bound says of one batch."""

    #: Panes that start beyond it are put aside; None without a bound.
    limit: Micros | None
    #: Votes for a jump, in [0, support), to be handed in with the next batch.
    votes: int


@dataclass(frozen=True, slots=True)
class FutureBound:
    """A limit of `max_ahead` microseconds beyond the rest, None for no limit; `support` rows move it (see above)."""

    max_ahead: Micros | None = DAY
    support: int = SUPPORT

    def __post_init__(self) -> None:
        if self.max_ahead is not None and self.max_ahead <= 0:
            raise ConfigError(f"max_ahead must be longer than 0, got {self.max_ahead} microseconds; None turns it off")
        if self.support < 1:
            raise ConfigError(f"support must be at least 1 row, got {self.support}")

    def judge(self, newest: Micros | None, votes: int, arrivals: Arrivals) -> Verdict:
        """Return the limit for a whole batch (nothing put aside yet), given the newest time believed before it."""
        if self.max_ahead is None:
            return Verdict(None, 0)
        if newest is None:
            return self._first(arrivals)
        limit = _reach(newest, self.max_ahead, arrivals) + self.max_ahead
        aside = arrivals.pane_start > limit
        beyond = int(arrivals.rows[aside].sum())
        votes = max(0, votes + beyond - (arrivals.total - beyond))
        if beyond and votes >= self.support:
            restart = _lower_median(arrivals.pane_start[aside], arrivals.rows[aside])
            return Verdict(_reach(restart, self.max_ahead, arrivals) + self.max_ahead, 0)
        return Verdict(limit, votes)

    def _first(self, arrivals: Arrivals) -> Verdict:
        if self.max_ahead is None or not len(arrivals):
            return Verdict(None, 0)
        start = _lower_median(arrivals.pane_start, arrivals.rows)
        return Verdict(_reach(start, self.max_ahead, arrivals) + self.max_ahead, 0)


def _lower_median(times: np.typing.NDArray[np.int64], rows: np.typing.NDArray[np.int64]) -> Micros:
    """Return the time at or below which half of the rows lie; times ascend, at least one row."""
    cumulative = np.cumsum(rows)
    return int(times[np.searchsorted(cumulative, (cumulative[-1] + 1) // 2)])


def _reach(start: Micros, max_ahead: Micros, arrivals: Arrivals) -> Micros:
    """Return the newest time that is believed when each pane may lead by `max_ahead` those before it."""
    reach = start
    ahead = arrivals.newest > start
    for pane_start, newest in zip(arrivals.pane_start[ahead].tolist(), arrivals.newest[ahead].tolist(), strict=True):
        if pane_start > reach + max_ahead:
            break
        reach = max(reach, min(newest, reach + max_ahead))
    return reach
