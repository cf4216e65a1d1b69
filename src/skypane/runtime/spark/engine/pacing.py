"""The pauses of a query without a trigger of its own, from one batch to the next (control/pace.py), with their clock."""

from __future__ import annotations

import time

from skypane.control.pace import BatchEnd, Pace, PacedBatch
from skypane.metrics import InputReport
from skypane.policy import Decision
from skypane.runtime.spark.engine.program import ProgramState
from skypane.runtime.spark.engine.timer import Timer


class Pacing:
    """Decides after each batch for how long the query pauses; `policy` None: not at all."""

    def __init__(self, policy: Pace | None) -> None:
        self._policy = policy
        self._state = None if policy is None else policy.init()
        self._until = 0.0

    def after(self, timer: Timer, rows: int, state: ProgramState, inputs: InputReport) -> Decision[float] | None:
        """Return the pause after a batch, from now on; None without a policy.

        A source that reports a backlog, or that counts its readers by the durations of batches, does not wait.
        """
        if self._policy is None or self._state is None:
            return None
        batch = PacedBatch(timer.began, rows, state.progress.newest, state.due)
        now = time.perf_counter()
        known = BatchEnd(now, rows_wait=inputs.backlog > 0 or inputs.sized)
        self._state, decision = self._policy.decide(self._policy.observe(self._state, batch), known)
        self._until = now + decision.value
        return decision

    @property
    def left(self) -> float:
        """Seconds until the pause ends; 0 without one."""
        return max(0.0, self._until - time.perf_counter())
