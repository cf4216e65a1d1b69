"""Spark's own rule, for comparison: the punctuation lies a fixed delay behind the newest time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from skypane.progress.arrivals import Arrivals
from skypane.progress.law import PunctuationLaw, not_negative
from skypane.progress.state import Progress
from skypane.types import Duration, micros


@dataclass(frozen=True)
class Watermark(PunctuationLaw[Progress]):
    """tp = max(tp, tmax - delay).

    >>> Watermark("600 seconds").delay
    '10 minutes'
    """

    delay: Duration

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
