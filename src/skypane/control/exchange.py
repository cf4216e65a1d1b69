"""Decide whether rows are exchanged between tasks before they are lifted; an exchange costs a third of a batch.

Without an exchange, every source partition is lifted where it is read. That is as good as routing if the partitions are
balanced and do not divide panes among many tasks; both are measured on the last batch without an exchange.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.kernels.elementary import power
from skypane.policy import Decision, Policy
from skypane.snapshots import JsonState
from skypane.types import ConfigError

PROBE_EVERY = 50
"""Exchanged batches after which one runs without an exchange, to measure the source's partitions again."""


DEFAULT_GROWTH = 0.75
"""Growth of skylines in eight dimensions; a top-k has 0 (see GrowingQuery)."""

CONFIRM = 3
"""Number of consecutive batches in which an exchange must pay before rows are exchanged: the first batch of a query is
slow for other reasons, such as workers that load their kernels."""


@dataclass(frozen=True, slots=True)
class SourceSpread:
    """Distribution of the rows of one batch without an exchange over the source's partitions.

    busy            lifting seconds of each task
    panes           distinct panes
    partials        (pane, task) pairs: equal to panes if no pane is divided
    merge_seconds   duration of the window-level query
    workers         tasks that would share the work after an exchange
    """

    row_count: int
    busy: tuple[float, ...]
    panes: int
    partials: int
    merge_seconds: float
    workers: int


@dataclass(frozen=True, slots=True)
class ExchangeState(JsonState):
    """Decision for the next batch, from measurements of the batch `age` batches ago.

    confirmed   consecutive batches in which an exchange would have paid
    """

    needed: bool = False
    because: str = "nothing measured yet: rows stay where they are read"
    age: int = 0
    confirmed: int = 0


@dataclass(frozen=True, slots=True)
class Exchange(Policy[ExchangeState, SourceSpread | None, None, bool]):
    """Exchange rows if balance and undivided panes would have saved more than an exchange costs.

    The policy observes None after a batch with an exchange, which shows nothing of the source's partitions. It knows
    nothing (None) of a batch in advance.

    growth   exponent of the partial's size: n rows leave n^growth; the default is for queries that do not declare it

    For a pane in c partitions, undivided panes leave c^(growth - 1) of the rows to merge, rather than 1 / c; and the
    fixed cost of a window is not saved. Without these two corrections, small panes were exchanged at 1.7 times the cost
    of leaving them (docs/reproductions.md, own-routing).
    """

    State = ExchangeState
    costs: Costs = DEFAULT_COSTS
    growth: float = DEFAULT_GROWTH

    def __post_init__(self) -> None:
        if not 0 <= self.growth <= 1:
            raise ConfigError(f"need 0 <= growth <= 1, got growth={self.growth}")

    def init(self) -> ExchangeState:
        return ExchangeState()

    def observe(self, state: ExchangeState, measured: SourceSpread | None) -> ExchangeState:
        if measured is None:
            if state.age + 1 >= PROBE_EVERY:
                # One more batch in which an exchange pays is enough to resume it.
                because = f"measuring the source again after {PROBE_EVERY} batches"
                return ExchangeState(needed=False, because=because, confirmed=CONFIRM - 1)
            return replace(state, age=state.age + 1)
        if not measured.row_count:
            return replace(state, age=0)
        figures = self.figures(measured)
        pays = figures["balance"] + figures["whole_panes"] > figures["exchange"]
        confirmed = min(state.confirmed + 1, CONFIRM) if pays else 0
        return ExchangeState(needed=confirmed >= CONFIRM, because=_in_words(figures), confirmed=confirmed)

    def decide(self, state: ExchangeState, known: None = None) -> tuple[ExchangeState, Decision[bool]]:  # noqa: ARG002
        return state, Decision("exchange", state.needed, state.because)

    def figures(self, spread: SourceSpread) -> dict[str, float]:
        """Return the seconds saved by balance and undivided panes, the cost of an exchange, and partitions per pane."""
        partitions = spread.partials / spread.panes if spread.panes else 1.0
        merging = max(0.0, spread.merge_seconds - spread.panes * self.costs.window)
        return {
            "balance": max(spread.busy, default=0.0) - sum(spread.busy) / max(spread.workers, 1),
            "whole_panes": merging * (1 - float(power(partitions, self.growth - 1))),
            "exchange": self.costs.exchanging(spread.row_count),
            "partitions": partitions,
        }


def _in_words(figures: Mapping[str, float]) -> str:
    return (
        f"balance would save {figures['balance'] * 1e3:.0f} ms, whole panes {figures['whole_panes'] * 1e3:.0f} ms "
        f"({figures['partitions']:.2f} partitions a pane), an exchange costs {figures['exchange'] * 1e3:.0f} ms"
    )
