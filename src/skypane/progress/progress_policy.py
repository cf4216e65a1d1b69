"""Interface of progress policies: their input, state and methods (docs/progress.md; paper 1, section 4.1.1).

A policy is a frozen value. The engine processes a micro-batch as a whole and calls, in this order:

    verdict = policy.judge(state, arrivals)   # panes beyond verdict.limit are held; some held ones are quarantined
    state = policy.step(state, arrivals)      # then panes with end <= state.punctuation are closed

A drain calls the following, after which no pane is held:

    verdict, state = policy.settle(state)     # held panes are accepted or quarantined
    state = policy.close(state, end)          # then all panes are closed

Rows whose pane the punctuation *before* the batch has closed are late: the engine drops them, the policy counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from skypane.progress.far_future import FutureDecision, HeldPanes
from skypane.progress.pane_arrivals import PaneArrivals
from skypane.types import Micros


class ProgressState(Protocol):
    """Fields of every policy's state; states are frozen values, compared by ==."""

    @property
    def punctuation(self) -> Micros | None:
        """tp: panes with end <= tp are closed; never decreases; None until the first row."""
        ...

    @property
    def newest(self) -> Micros | None:
        """tmax: the newest event time, without held rows."""
        ...

    @property
    def slack(self) -> Micros:
        """K: the intended distance of the punctuation behind `newest`."""
        ...

    @property
    def seen(self) -> int:
        """Rows so far, including late ones, excluding held and quarantined ones."""
        ...

    @property
    def dropped(self) -> int:
        """Late rows so far: rows whose pane was closed before their batch."""
        ...

    @property
    def held(self) -> HeldPanes:
        """The held panes, which are too far ahead of all others."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON value, which the policy's restore() reads."""
        ...


class ProgressPolicy(Protocol):
    """A pure progress policy: frozen, without a clock or random numbers; equal inputs give equal states.

    A policy receives only states that it returned itself; the parameters are Any, since each policy has its own type.
    """

    @property
    def drop_budget(self) -> float | None:
        """Largest share of rows that may be dropped, or None if the policy has no budget."""
        ...

    @property
    def needs_source(self) -> bool:
        """Whether arrivals must contain the rows of each source, so that the job has to name the source column."""
        ...

    def init(self) -> ProgressState:
        """Return the state before the first batch."""
        ...

    def judge(self, state: Any, arrivals: PaneArrivals) -> FutureDecision:
        """Return which panes are held from now on, and which are released."""
        ...

    def step(self, state: Any, arrivals: PaneArrivals) -> ProgressState:
        """Return the state after a batch."""
        ...

    def settle(self, state: Any) -> tuple[FutureDecision, ProgressState]:
        """Return which held panes a drain accepts and which it quarantines, and the state after it."""
        ...

    def close(self, state: Any, time: Micros) -> ProgressState:
        """Return the state after an external punctuation at `time`: the stream is complete before it."""
        ...

    def restore(self, snapshot: Mapping[str, Any]) -> ProgressState:
        """Return the state that snapshot() wrote; raise CheckpointError if it is invalid."""
        ...

    def explain(self, state: Any) -> str:
        """Return the reason for the current punctuation in one line."""
        ...

    def figures(self, state: Any) -> Mapping[str, float]:
        """Return the numbers behind explain(), by name."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two policies if and only if the policies are equal."""
        ...
