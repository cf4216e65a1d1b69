"""How many readers a batch has, where a bound on latency decides: the law, and what it is told of batches.

A batch is taken to last from the moment that it is planned until Spark asks for the next one. With a trigger interval that
is longer than the batches are, so rows look dearer than they are, and readers are too many rather than too few.
"""

from __future__ import annotations

from skypane.control.admission.readers import Batch, Readers, Waiting
from skypane.control.law import Decision


class Sizing:
    """Runs the law from batch to batch."""

    def __init__(self, law: Readers) -> None:
        self.law = law
        self.state = law.init()
        self.decision: Decision[int] | None = None
        #: rows of the batch that is planned, and when it began
        self._rows = 0.0
        self._since: float | None = None

    def decided(self, rows: float, waiting: Waiting) -> int:
        """Return the readers of a batch of so many rows."""
        self.state, self.decision = self.law.decide(self.state, waiting)
        self._rows, self._since = rows, None
        return self.decision.value

    def begun(self, now: float) -> None:
        """Note when the batch begins."""
        self._since = now

    def finished(self, now: float) -> None:
        """Learn from the batch, if one was under way."""
        if self._since is not None and self.decision is not None:
            self.state = self.law.observe(self.state, Batch(round(self._rows), now - self._since, self.decision.value))
        self._since = None
