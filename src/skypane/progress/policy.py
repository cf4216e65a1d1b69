"""What a progress policy is told, what it keeps, and what it must do (docs/progress.md; paper 1, section 4.1.1).

A policy is a frozen law. The engine takes a micro-batch in as a whole and asks it, in this order:

    verdict = policy.judge(state, arrivals)   # panes that start beyond verdict.limit are held, some held ones given up
    state = policy.step(state, arrivals)      # then panes with end <= state.punctuation are closed

and of a drain, after which nothing is held:

    verdict, state = policy.settle(state)     # panes that were held are believed, or given up
    state = policy.close(state, end)          # then all panes are closed

Rows whose pane was closed by the punctuation *before* the batch are late: the engine drops them, the policy counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from skypane.progress.arrivals import Arrivals
from skypane.progress.future import Held, Verdict
from skypane.types import Micros


class ProgressState(Protocol):
    """What every policy's state tells; states are frozen values, compared by ==."""

    @property
    def punctuation(self) -> Micros | None:
        """tp: panes with end <= tp are closed; never decreases; None until the first row."""
        ...

    @property
    def newest(self) -> Micros | None:
        """tmax: the newest event time that is believed."""
        ...

    @property
    def slack(self) -> Micros:
        """K: how far the punctuation is meant to lie behind `newest`."""
        ...

    @property
    def seen(self) -> int:
        """Rows so far, late ones with them, those that are held or quarantined without."""
        ...

    @property
    def dropped(self) -> int:
        """Rows so far whose pane was closed before they came."""
        ...

    @property
    def held(self) -> Held:
        """The panes too far ahead to be believed yet."""
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

    @property
    def needs_source(self) -> bool:
        """Whether arrivals must tell the rows of each source, so that the job has to name the source column."""
        ...

    def init(self) -> ProgressState:
        """Return the state before the first batch."""
        ...

    def judge(self, state: Any, arrivals: Arrivals) -> Verdict:
        """Return which panes are held, and which are held no longer."""
        ...

    def step(self, state: Any, arrivals: Arrivals) -> ProgressState:
        """Return the state after a batch."""
        ...

    def settle(self, state: Any) -> tuple[Verdict, ProgressState]:
        """Return what becomes of the held panes when nothing more comes: believed or given up; and the state after it."""
        ...

    def close(self, state: Any, time: Micros) -> ProgressState:
        """Return the state after a punctuation at `time` that comes from outside: nothing older is awaited."""
        ...

    def restore(self, snapshot: Mapping[str, Any]) -> ProgressState:
        """Return the state whose snapshot() this is; raise CheckpointError if it cannot be one."""
        ...

    def explain(self, state: Any) -> str:
        """Return in one readable line why the punctuation is where it is."""
        ...

    def figures(self, state: Any) -> Mapping[str, float]:
        """Return the numbers behind explain(), by name."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two policies exactly when they are."""
        ...
