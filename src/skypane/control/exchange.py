"""Decide whether rows are exchanged between tasks before they are lifted; an exchange costs a third of a batch.

Without an exchange, every source partition is lifted where it is read. That is as good as routing if the partitions are
balanced and do not divide panes among many tasks; both are measured on the last batch without an exchange.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.kernels.elementary import power
from skypane.policy import Decision, Policy
from skypane.snapshots import ADDED, JsonState
from skypane.types import ConfigError

PROBE_EVERY = 50
"""Exchanged batches after which one runs without an exchange, to measure the source's partitions again."""

TRIAL: Final = 6
"""Exchanged batches of a trial: one that Spark compiles, and five that show what an exchange costs (cost_learning.py)."""
WORTH_A_TRIAL: Final = 0.1
"""Share of its assumed cost that an exchange must save before a trial measures its real cost."""
LONGEST_WAIT: Final = 64 * PROBE_EVERY
"""Maximum number of batches between two trials after which exchanges were stopped."""

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
    saving      seconds that an exchange would have saved, whatever it costs; None if not measured
    row_count   rows of that batch
    waited      batches since the last trial in which an exchange was worth one
    patience    number of such batches after which one is made; it doubles with each trial in vain
    """

    needed: bool = False
    because: str = "nothing measured yet: rows stay where they are read"
    age: int = 0
    confirmed: int = 0
    saving: float | None = field(default=None, metadata=ADDED)
    row_count: int = field(default=0, metadata=ADDED)
    waited: int = field(default=0, metadata=ADDED)
    patience: int = field(default=PROBE_EVERY, metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Exchange(Policy[ExchangeState, SourceSpread | None, None, bool]):
    """Exchange rows if balance and undivided panes would have saved more than an exchange costs.

    The policy observes None after a batch with an exchange, which shows nothing of the source's partitions. It knows
    nothing (None) of a batch in advance. Its costs may differ from call to call, as batches show them: rows are no
    longer exchanged once that costs more than it saves. Only exchanged batches show the cost, so if it is assumed to be
    too high, but not by far, some are exchanged to measure it.

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
            return self._after_exchange(replace(state, age=state.age + 1))
        if not measured.row_count:
            return replace(state, age=0)
        figures = self.figures(measured)
        saving, because = figures["balance"] + figures["whole_panes"], _in_words(figures)
        seen = replace(state, needed=False, because=because, age=0, saving=saving, row_count=measured.row_count)
        if self._pays(seen):
            confirmed = min(state.confirmed + 1, CONFIRM)
            return replace(seen, needed=confirmed >= CONFIRM, confirmed=confirmed, waited=0, patience=PROBE_EVERY)
        waited = state.waited + (saving > WORTH_A_TRIAL * figures["exchange"])
        if waited >= state.patience:
            because += f": {TRIAL} batches are exchanged to measure that"
            return replace(seen, needed=True, because=because, confirmed=0, waited=0)
        return replace(seen, confirmed=0, waited=waited)

    def _after_exchange(self, state: ExchangeState) -> ExchangeState:
        if state.age >= PROBE_EVERY:
            # One more batch in which an exchange pays is enough to resume it.
            because = f"measuring the source again after {PROBE_EVERY} batches"
            return replace(state, needed=False, because=because, age=0, confirmed=CONFIRM - 1)
        if state.age < TRIAL or self._pays(state):
            return state
        cost = self.costs.exchanging(state.row_count)
        because = f"an exchange would save {(state.saving or 0.0) * 1e3:.0f} ms, but has cost {cost * 1e3:.0f} ms"
        patience = min(2 * state.patience, LONGEST_WAIT)
        return replace(state, needed=False, because=because, age=0, confirmed=0, waited=0, patience=patience)

    def _pays(self, state: ExchangeState) -> bool:
        return state.saving is None or state.saving > self.costs.exchanging(state.row_count)

    def decide(self, state: ExchangeState, known: None = None) -> tuple[ExchangeState, Decision[bool]]:  # noqa: ARG002
        cost = self.costs.exchanging(state.row_count)
        figures = {} if state.saving is None else {"saving": state.saving, "exchange": cost}
        return state, Decision("exchange", state.needed, state.because, figures)

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
