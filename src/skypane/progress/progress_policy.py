"""Interface of progress policies: their input, state and decisions (docs/progress.md; paper 1, section 4.1.1).

The engine processes a micro-batch as a whole and calls

    state, decision = policy.decide(state, arrivals)

Panes beyond decision.value.future.limit are held, some held ones are abandoned: their rows are quarantined. Then panes
with end <= decision.value.time are closed. A drain calls the following, after which no pane is held:

    state, decision = policy.settle(state)    # held panes are accepted or abandoned
    state = policy.close(state, end)          # then all panes are closed

Rows whose pane the punctuation *before* the batch has closed are late: the engine drops them, the policy counts them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from skypane.policy import Decision, Policy
from skypane.progress.clock_offsets import ClockRules
from skypane.progress.far_future import FutureDecision, HeldPanes
from skypane.progress.pane_arrivals import PaneArrivals
from skypane.types import Micros


class ProgressState(Protocol):
    """Fields of every progress policy's state; states are frozen values, compared by ==."""

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
        """Rows so far, including late ones, excluding held and abandoned ones."""
        ...

    @property
    def dropped(self) -> int:
        """Late rows so far: rows whose pane was closed before their batch."""
        ...

    @property
    def held(self) -> HeldPanes:
        """The held panes, which are too far ahead of all others."""
        ...


@dataclass(frozen=True, slots=True)
class Punctuation:
    """The decision on a batch.

    time     tp, the state's punctuation
    future   which panes too far ahead of the others are held, followed or abandoned
    """

    time: Micros | None
    future: FutureDecision


class ProgressPolicy(Policy[Any, None, PaneArrivals, Punctuation]):
    """A policy that decides, from the arrivals of a batch, which panes are closed and which are held.

    States have the fields of ProgressState. A policy receives only states that it returned itself.

    >>> isinstance(sp.Watermark("1 hour"), sp.ProgressPolicy)
    True
    """

    #: Whether arrivals must contain the rows of each source, so that the job has to name the source column.
    needs_source: ClassVar[bool] = False

    @property
    def needs_arrival(self) -> bool:
        """Whether arrivals must have the time at which their batch arrived."""
        return False

    @property
    def judges_clocks(self) -> bool:
        """Whether rows of sources whose clocks are off are corrected or quarantined; the job has to name the source column."""
        return False

    def clock_rules(self, state: Any) -> ClockRules | None:  # noqa: ARG002
        """Return the treatment of rows of sources whose clocks are off, in the batch after `state`; None: nothing."""
        return None

    @property
    def needs_backlog(self) -> bool:
        """Whether arrivals should have the event time since which rows wait at the inputs (PaneArrivals.waiting_since)."""
        return False

    @property
    def drop_budget(self) -> float | None:
        """Largest share of rows that may be dropped, or None if the policy has no budget."""
        return None

    @property
    def amend_budget(self) -> float | None:
        """Largest share of answered windows that late rows may amend, or None if the policy has no such budget."""
        return None

    #: Whether arrivals should have their rows in the order of reading, for batches of which asks_order() is true.
    needs_order: ClassVar[bool] = False

    def asks_order(self, state: Any, arrivals: PaneArrivals) -> bool:  # noqa: ARG002
        """Return whether the order of the rows of a batch may matter: `arrivals` should have their runs."""
        return False

    @abstractmethod
    def settle(self, state: Any) -> tuple[Any, Decision[Punctuation]]:
        """Return the state after a drain has accepted or abandoned the held panes, and the decision on them."""

    @abstractmethod
    def close(self, state: Any, time: Micros) -> Any:
        """Return the state after an external punctuation at `time`: the stream is complete before it."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return a JSON value that is equal for two policies if and only if the policies are equal."""

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Self:
        """Return the policy of a description; raise TypeError or ValueError if only the job's own code can make it."""
        raise TypeError(f"only the job's own code makes {description} of {cls.__name__}")
