"""Adaptive K-slack: as little slack as a budget of dropped rows allows (paper 1, section 6.2, figure 17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from skypane.progress.arrivals import Arrivals
from skypane.progress.future import DAY
from skypane.progress.law import PunctuationLaw, not_negative
from skypane.progress.recent import RecentDistances
from skypane.progress.state import Progress
from skypane.types import ConfigError, Duration, Micros, micros

#: Recent distances are halved every _MEMORY / max_drop rows: long enough to hold a dozen rows that would be dropped.
_MEMORY = 10
#: A batch may spend at most this part of the credit, if the next is as large as the last.
_BATCHES = 4
#: However large the credit, K is never chosen to drop more than this many times max_drop of the rows.
_BURST = 4


@dataclass(frozen=True)
class AdaptiveProgress(Progress):
    """Progress, and how late rows have been of late."""

    recent: RecentDistances = field(default_factory=RecentDistances)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON object."""
        return {**super().snapshot(), "recent": self.recent.snapshot()}

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the state whose snapshot() this is."""
        values = dict(snapshot)
        if "recent" in values:
            values["recent"] = RecentDistances.restored(values["recent"])
        return super().restored(values)


@dataclass(frozen=True)
class AqKSlack(PunctuationLaw[AdaptiveProgress]):
    """Drop at most the share `max_drop` of all rows, and wait no longer than that takes.

    The law keeps an account. Every row brings `max_drop` of credit, every dropped row costs one:

        credit = max_drop * seen - dropped

    and the credit is spent at the pace at which it would last for `reserve / max_drop` more rows: K is the smallest
    slack that would have dropped no more than that share of the recent rows. So the credit settles where as much is
    spent as comes in, at `reserve` rows: that much is held back for a storm that no law can see coming. Quiet hours
    earn, storms spend, and an error of the estimate corrects itself, because what counts is what was really dropped.

    - No credit left: K is `max_slack`. The punctuation does not go back, so it stands still until the newest time
      has come that far, or the credit is earned again; nothing more is lost that waiting could save.
    - Nothing known yet (first batch): the same.
    - Too few rows known to tell the share, or so little credit that it buys none: K is the longest recent distance.

    `max_slack` is the longest that is waited for anything, so progress never hangs; if more than `max_drop` of the
    rows are later than that, the budget cannot be kept by any law, K stays at `max_slack`, and the metrics show it.
    """

    max_drop: float
    max_slack: Duration = DAY
    #: Rows of credit held back. More is safer against storms, and leaves more of the budget unspent at first.
    reserve: int = 100

    _durations: ClassVar[tuple[str, ...]] = ("max_slack", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.max_drop < 1:
            raise ConfigError(f"max_drop is a share of rows, need 0 < max_drop < 1, got {self.max_drop}")
        if self.reserve < 1:
            raise ConfigError(f"reserve must be at least 1 row, got {self.reserve}")
        not_negative("max_slack", self.max_slack)

    @property
    def drop_budget(self) -> float:
        """Largest share of rows that may be dropped."""
        return self.max_drop

    def init(self) -> AdaptiveProgress:
        """Return the state before the first batch."""
        return AdaptiveProgress(slack=micros(self.max_slack))

    def restore(self, snapshot: Mapping[str, Any]) -> AdaptiveProgress:
        """Return the state whose snapshot() this is."""
        return AdaptiveProgress.restored(snapshot)

    def _measure(self, before: AdaptiveProgress, counted: AdaptiveProgress, arrivals: Arrivals) -> AdaptiveProgress:
        if before.newest is None:
            return counted
        batch = arrivals.total
        memory = max(_MEMORY / self.max_drop, batch)
        recent = before.recent.add(before.newest - arrivals.pane_end, arrivals.rows, memory)
        credit = self.max_drop * counted.seen - counted.dropped
        return replace(counted, recent=recent, slack=self._slack(recent, credit, batch))

    def _slack(self, recent: RecentDistances, credit: float, batch: int) -> Micros:
        most = micros(self.max_slack)
        if credit <= 0:
            return most
        pace = max(self.reserve / self.max_drop, _BATCHES * batch)
        slack = recent.slack_for(min(credit / pace, _BURST * self.max_drop))
        return min(most, recent.longest() if slack is None else slack)
