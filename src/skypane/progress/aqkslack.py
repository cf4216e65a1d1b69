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
#: What happens within one cycle (a batch, or a pane and the slack behind it) is no trend: memory and pace span four.
_CYCLES = 4
#: However large the credit, K is never chosen to drop more than this many times max_drop of the rows.
_BURST = 4


@dataclass(frozen=True)
class AdaptiveProgress(Progress):
    """Progress, and how late rows have been of late."""

    recent: RecentDistances = field(default_factory=RecentDistances)
    #: The newest time after the first batch: how long the stream has been watched counts from there.
    since: Micros | None = None

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
        share  = credit / pace
        K      = the smallest slack that would have dropped at most that share of the recent rows

    where `pace` is the number of rows over which the credit is to last: `reserve / max_drop`, or the rows of four
    cycles where that is more. So the credit settles where as much is spent as comes in, at `max_drop * pace` rows, at
    least `reserve`: that much is held back for what no law can see coming. Quiet hours earn, storms spend, and an
    error of the estimate corrects itself, because what counts is what was really dropped.

    A cycle is a batch, or the event time of a pane and the slack behind it: so long it takes until a row of a pane
    just closed can no longer come. A pane is closed at once, its rows are lost over a cycle; who spends faster than
    that spends the same credit twice.

    The law waits `max_slack`, which is to say that the punctuation stands still, for it cannot go back,
    - until the stream has been watched for four cycles: how late rows are cannot be known sooner;
    - while there is no credit: what is lost from then on, no waiting could have saved.
    With so few rows known that one more could upset the share, K is the longest recent distance.

    `max_slack` is also the longest that anything is waited for, so progress never hangs. If more than `max_drop` of
    the rows are later than that, no law can keep the budget; K then stays at `max_slack`, and the metrics show it.
    """

    max_drop: float
    max_slack: Duration = DAY
    #: Rows of credit held back. More is safer against storms, and leaves more of the budget unspent at first.
    reserve: int = 100

    _durations: ClassVar[tuple[str, ...]] = ("max_slack", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        given: object = self.max_drop
        if not (isinstance(given, int | float) and 0 < given < 1):
            raise ConfigError(f"max_drop is a share of rows such as 0.01, need 0 < max_drop < 1, got {self.max_drop!r}")
        if self.reserve < 1:
            raise ConfigError(f"reserve must be at least 1 row, got {self.reserve}")
        not_negative("max_slack", micros(self.max_slack, "max_slack"))  # None is refused: progress would hang

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
        if before.newest is None or before.since is None or counted.newest is None:
            return replace(counted, since=counted.newest)
        pane = int((arrivals.pane_end - arrivals.pane_start).max())
        cycle = max(arrivals.total, before.recent.rows_in(pane + self._needed(before.recent, self.max_drop)))
        recent = before.recent.add(
            before.newest - arrivals.pane_end,
            arrivals.rows,
            counted.newest - before.newest,
            half_life=max(_MEMORY / self.max_drop, _CYCLES * cycle),
        )
        credit = self.max_drop * counted.seen - counted.dropped
        share = credit / max(self.reserve / self.max_drop, _CYCLES * cycle)
        slack = self._needed(recent, min(share, _BURST * self.max_drop))
        known = _CYCLES * (pane + slack) <= counted.newest - before.since
        return replace(counted, recent=recent, slack=slack if known and credit > 0 else micros(self.max_slack))

    def _needed(self, recent: RecentDistances, share: float) -> Micros:
        """Return the slack that would have dropped at most `share` of the recent rows."""
        slack = recent.slack_for(share)
        return min(micros(self.max_slack), recent.longest() if slack is None else slack)
