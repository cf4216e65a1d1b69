"""Interface of policies without state."""

from __future__ import annotations

from skypane.control.splitting.splitting_policy import NoState
from skypane.policy import K, M, Policy, V


class StatelessPolicy(Policy[NoState, M, K, V]):
    """A policy without state: it decides from the known facts alone."""

    State = NoState

    def init(self) -> NoState:
        return NoState()
