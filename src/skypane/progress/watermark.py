"""Spark's watermark: the punctuation lies a fixed delay behind the newest time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from skypane.progress.pane_arrivals import PaneArrivals
from skypane.progress.slack_policy import SlackPolicy, not_negative
from skypane.progress.state import Progress
from skypane.types import Duration, Micros, micros, truth


@dataclass(frozen=True)
class Watermark(SlackPolicy[Progress]):
    """tp = max(tp, tmax - delay); for tumbling windows, row for row the same as Spark's withWatermark.

    Spark filters late rows by the watermark at the end of the previous run. If the query keeps up, a run without data
    follows each batch, and the next batch is filtered by the newest time of the last one: this policy by default.
    If batches follow each other at once, Spark is a batch behind: this policy with `behind`.

    docs/progress.md describes the differences for overlapping windows.

    >>> sp.Watermark("600 seconds").delay
    '10 minutes'
    """

    #: How far the punctuation lies behind the newest time.
    delay: Duration
    #: Whether a batch moves the punctuation only with the next batch, as in a Spark query with a backlog.
    behind: bool = False

    _durations: ClassVar[tuple[str, ...]] = ("delay", "max_ahead")

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative("delay", self.delay)
        object.__setattr__(self, "behind", truth(self.behind, "behind"))

    def init(self) -> Progress:
        """Return the state before the first batch; its slack is the delay."""
        return Progress(slack=micros(self.delay))

    def restore(self, snapshot: Any) -> Progress:
        """Return the state that snapshot() wrote, with this policy's delay as its slack."""
        state: Progress = super().restore(snapshot)
        return replace(state, slack=micros(self.delay))

    def _measure(self, before: Progress, counted: Progress, arrivals: PaneArrivals) -> Progress:  # noqa: ARG002
        return counted

    def _punctuation(self, before: Progress, measured: Progress) -> Micros | None:
        newest = before.newest if self.behind else measured.newest
        return None if newest is None else newest - measured.slack
