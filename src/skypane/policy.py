"""Interface of all policies, of progress and of control: a frozen configuration, a state, and decisions with reasons.

    policy = AdaptiveSplitting(...)                 # frozen: equal policies decide alike
    state = policy.init()
    state = policy.observe(state, measured)         # after an interval: its measurements
    state, decision = policy.decide(state, known)   # before the next one: what is known of it
    state = policy.restore(policy.snapshot(state))  # through the ledger: JSON values only

A policy reads no clock, draws no random numbers and opens no files: equal inputs give equal decisions, so the simulator
and the engine decide alike. A policy without state is a function that returns a Decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, cast

from skypane.snapshots import from_json, to_json

S = TypeVar("S")
M = TypeVar("M")
K = TypeVar("K")
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[V_co]):
    """One decision of a policy.

    what      name of the decision, such as "splitting"
    value     the value from now on
    because   the reason, in one line
    figures   the numbers in the reason, by name
    """

    what: str
    value: V_co
    because: str
    figures: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the decision as a JSON object for the metrics."""
        return {
            "what": self.what,
            "value": to_json(self.value),
            "because": self.because,
            "figures": dict(self.figures),
        }


class Policy(ABC, Generic[S, M, K, V]):
    """A policy with states S that observes M and decides V from known facts K. Subclasses are frozen dataclasses."""

    #: The class of the states, a frozen dataclass of JSON values.
    State: ClassVar[type[Any]]

    @abstractmethod
    def init(self) -> S:
        """Return the state before the first interval."""

    def observe(self, state: S, measured: M) -> S:  # noqa: ARG002 - for policies that learn from what they know
        """Return the state after an interval with these measurements; by default they change nothing."""
        return state

    @abstractmethod
    def decide(self, state: S, known: K) -> tuple[S, Decision[V]]:
        """Return the state after the decision, and the decision for the next interval."""

    def snapshot(self, state: S) -> Any:
        """Return the state as a JSON value."""
        return to_json(state)

    def restore(self, snapshot: Any) -> S:
        """Return the state that snapshot() wrote; raise CheckpointError, naming the field, if it is invalid."""
        return cast("S", from_json(self.State, snapshot))
