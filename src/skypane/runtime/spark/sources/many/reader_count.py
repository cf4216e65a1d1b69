"""The number of readers of a micro-batch under a bound on latency: runs the policy `Readers`, measures batches for it.

A batch counts from its planning until Spark requests the next one. If the trigger interval is longer than the batches,
rows seem to cost more than they do, so the policy chooses too many readers rather than too few.
"""

from __future__ import annotations

from skypane.control.admission.readers import Backlog, ReaderBatch, Readers
from skypane.policy import Decision


class ReaderCount:
    """Runs the policy from batch to batch."""

    def __init__(self, policy: Readers) -> None:
        self.policy = policy
        self.state = policy.init()
        self.decision: Decision[int] | None = None
        #: rows of the planned batch, and when it began
        self._rows = 0.0
        self._since: float | None = None

    def decided(self, rows: float, waiting: Backlog) -> int:
        """Return the number of readers for a batch of `rows` rows."""
        self.state, self.decision = self.policy.decide(self.state, waiting)
        self._rows, self._since = rows, None
        return self.decision.value

    def begun(self, now: float) -> None:
        """Record when the batch begins."""
        self._since = now

    def finished(self, now: float) -> None:
        """Pass the batch's duration to the policy, if a batch was running."""
        if self._since is not None and self.decision is not None:
            self.state = self.policy.observe(
                self.state, ReaderBatch(round(self._rows), now - self._since, self.decision.value)
            )
        self._since = None
