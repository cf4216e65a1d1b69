"""Spark's own rule: the punctuation lies a fixed delay behind the newest time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from skypane.progress.arrivals import Arrivals
from skypane.progress.law import PunctuationLaw, not_negative
from skypane.progress.state import Progress
from skypane.types import Duration, Micros, micros


@dataclass(frozen=True)
class Watermark(PunctuationLaw[Progress]):
    """tp = max(tp, tmax - delay), of tumbling windows the rule of Spark's withWatermark row for row.

    Spark filters late rows by the watermark with which the run before ended. Where it has caught up, a run without
    data follows each batch, and the next batch is filtered by what the last one brought: this law as it stands.
    Where one batch follows the other at once, Spark is a batch behind: this law with `behind`.

    docs/progress.md says where windows that overlap make a difference.

    >>> Watermark("600 seconds").delay
    '10 minutes'
    """

    delay: Duration
    #: Whether a batch counts only when the next one has come, as in a Spark query with a backlog.
    behind: bool = False

    _durations: ClassVar[tuple[str, ...]] = ("delay", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative("delay", self.delay)

    def init(self) -> Progress:
        """Return the state before the first batch; the slack is known from the start."""
        return Progress(slack=micros(self.delay))

    def restore(self, snapshot: Mapping[str, Any]) -> Progress:
        """Return the state whose snapshot() this is; of a law with another delay, with this one's."""
        return replace(Progress.restored(snapshot), slack=micros(self.delay))

    def _measure(self, before: Progress, counted: Progress, arrivals: Arrivals) -> Progress:  # noqa: ARG002
        return counted

    def _punctuation(self, before: Progress, measured: Progress) -> Micros | None:
        newest = before.newest if self.behind else measured.newest
        return None if newest is None else newest - measured.slack
