"""What a progress policy is told, what it keeps, and what it must do (design, "Time"; paper 1, section 4.1.1).

A policy is a frozen law. The engine admits a micro-batch as a whole and asks it, in this order:

    limit = policy.limit(state, arrivals)                # rows of panes that start beyond it are quarantined ("future")
    state = policy.step(state, arrivals.upto(limit))     # then panes with end <= state.punctuation are closed

Rows whose pane was closed by the punctuation *before* the batch are late: the engine drops them, the policy counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from skypane.progress.arrivals import Arrivals
from skypane.types import Micros


class ProgressState(Protocol):
    """What every policy's state tells; states are frozen values, compared by ==."""

    @property
    def punctuation(self) -> Micros | None:
        """tp: panes with end <= tp are closed; never decreases; None until the first row."""
        ...

    @property
    def newest(self) -> Micros | None:
        """tmax: the newest event time that was accepted."""
        ...

    @property
    def slack(self) -> Micros:
        """K: how far the punctuation is meant to lie behind `newest`."""
        ...

    @property
    def seen(self) -> int:
        """Rows so far, late ones with them, quarantined ones without."""
        ...

    @property
    def dropped(self) -> int:
        """Rows so far whose pane was closed before they came."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON value; the policy's restore() takes it back."""
        ...


class ProgressPolicy(Protocol):
    """A pure law of progress: frozen, no clock, no chance; equal inputs give equal states.

    A policy takes back only states that it gave: hence Any where one comes in.
    """

    @property
    def drop_budget(self) -> float | None:
        """Largest share of rows that may be dropped, or None if the policy promises nothing about it."""
        ...

    def init(self) -> ProgressState:
        """Return the state before the first batch."""
        ...

    def limit(self, state: Any, arrivals: Arrivals) -> Micros | None:
        """Return the newest pane start that this batch may bring, or None for no bound."""
        ...

    def step(self, state: Any, arrivals: Arrivals) -> ProgressState:
        """Return the state after a batch; cut at limit() or not, the answer is the same."""
        ...

    def close(self, state: Any, time: Micros) -> ProgressState:
        """Return the state after a punctuation at `time` that comes from outside: nothing older is awaited."""
        ...

    def restore(self, snapshot: Mapping[str, Any]) -> ProgressState:
        """Return the state whose snapshot() this is; raise CheckpointError if it cannot be one."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two policies exactly when they are."""
        ...
