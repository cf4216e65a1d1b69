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


@dataclass(frozen=True)
class AdaptiveProgress(Progress):
    """Progress, and the distances seen of late."""

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
    """Keep dropped / seen at or below `max_drop`, at the least latency.

    K is the quantile of the recent distances at which the share of rows dropped would be `max_drop`, corrected by
    the credit: rows the budget allowed so far and that were not dropped. While there is no credit the punctuation holds.
    """

    max_drop: float
    max_slack: Duration = DAY
    half_life: float | None = None

    _durations: ClassVar[tuple[str, ...]] = ("max_slack", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.max_drop < 1:
            raise ConfigError(f"max_drop must be a share of rows between 0 and 1, got {self.max_drop}")
        not_negative("max_slack", self.max_slack)

    @property
    def drop_budget(self) -> float:
        """Largest share of rows that may be dropped."""
        return self.max_drop

    def init(self) -> AdaptiveProgress:
        """Return the state before the first batch."""
        return AdaptiveProgress()

    def restore(self, snapshot: Mapping[str, Any]) -> AdaptiveProgress:
        """Return the state whose snapshot() this is."""
        return AdaptiveProgress.restored(snapshot)

    def _measure(self, before: AdaptiveProgress, counted: AdaptiveProgress, arrivals: Arrivals) -> AdaptiveProgress:
        recent = before.recent
        if before.newest is not None:
            recent = recent.add(before.newest - arrivals.pane_end, arrivals.rows, self._memory)
        slack = self._slack(recent, self.max_drop * counted.seen - counted.dropped)
        return replace(counted, recent=recent, slack=slack)

    @property
    def _memory(self) -> float:
        return self.half_life or 100 / self.max_drop

    def _slack(self, recent: RecentDistances, credit: float) -> Micros:
        most = micros(self.max_slack)
        share = self.max_drop + credit / self._memory
        if credit <= 0 or share <= 0:
            return most
        return min(most, recent.slack_for(min(1.0, share)))
