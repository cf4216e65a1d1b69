"""The one shape of all control laws: a frozen configuration, an explicit state, and decisions that give their reasons.

    law = AdaptiveSplitting(...)            # frozen: equal laws decide alike
    state = law.init()
    state = law.observe(state, measured)    # after an interval: what the run showed
    state, decision = law.decide(state, known)   # before the next one: what is known of it
    state = law.restore(law.snapshot(state))     # through a ledger: JSON values only

A law reads no clock, draws nothing, and touches no file: equal inputs give equal decisions, so that what the simulator
shows is what the engine does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, cast

from skypane.control.snapshots import JsonState, from_json, to_json

S = TypeVar("S")
M = TypeVar("M")
K = TypeVar("K")
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[V_co]):
    """One decision of a law.

    what      what is decided, such as "splitting threshold"
    value     what it is from now on
    because   one readable line
    figures   the numbers that the line speaks of, by name
    """

    what: str
    value: V_co
    because: str
    figures: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the decision as a JSON object, for the metrics."""
        return {
            "what": self.what,
            "value": to_json(self.value),
            "because": self.because,
            "figures": dict(self.figures),
        }


@dataclass(frozen=True, slots=True)
class Stateless(JsonState):
    """The state of a law that needs none."""


class ControlLaw(ABC, Generic[S, M, K, V]):
    """A law over states S: observes M, decides V from what is known, K. Subclasses are frozen dataclasses."""

    #: The class of the states, a frozen dataclass of JSON values.
    State: ClassVar[type[Any]]

    @abstractmethod
    def init(self) -> S:
        """Return the state before anything was measured."""

    @abstractmethod
    def observe(self, state: S, measured: M) -> S:
        """Return the state after an interval of which this was measured."""

    @abstractmethod
    def decide(self, state: S, known: K) -> tuple[S, Decision[V]]:
        """Return the decision for what comes next, and the state after it."""

    def snapshot(self, state: S) -> Any:
        """Return the state as a JSON value."""
        return to_json(state)

    def restore(self, snapshot: Any) -> S:
        """Return the state whose snapshot this is; raise CheckpointError, naming the field, if it cannot be one."""
        return cast("S", from_json(self.State, snapshot))


class StatelessLaw(ControlLaw[Stateless, M, K, V]):
    """A law that learns nothing: it decides from what is known alone."""

    State = Stateless

    def init(self) -> Stateless:
        return Stateless()

    def observe(self, state: Stateless, measured: M) -> Stateless:  # noqa: ARG002 - nothing is learnt
        return state
