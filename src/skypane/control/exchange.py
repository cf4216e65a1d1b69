"""Whether rows have to move between tasks before they are lifted: an exchange costs a third of a batch.

Without one, every source partition is lifted where it is read. That is as good as routing as long as the partitions
are balanced and do not cut panes to pieces; both are measured on the last batch that ran without an exchange.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.law import ControlLaw, Decision
from skypane.control.snapshots import JsonState
from skypane.kernels.elementary import power
from skypane.types import ConfigError

PROBE_EVERY = 50
"""Batches after which the source's own partitions are looked at again: an uneven source may have become an even one."""


DEFAULT_GROWTH = 0.75
"""That of skylines in eight dimensions; a top-k has 0 (GrowingQuery tells)."""

CONFIRM = 3
"""Batches in a row in which an exchange would have paid, before one is made: the first batch of a query is slow for
reasons of its own, such as workers that load their kernels."""


@dataclass(frozen=True, slots=True)
class SourceSpread:
    """How the rows of one batch, which were not exchanged, were spread over the source's partitions.

    busy            seconds that each task lifted
    panes           distinct panes
    partials        (pane, task) pairs: as many as panes, if none is cut
    merge_seconds   what the window-level query took
    workers         tasks that could have shared the work, had rows been exchanged
    """

    row_count: int
    busy: tuple[float, ...]
    panes: int
    partials: int
    merge_seconds: float
    workers: int


@dataclass(frozen=True, slots=True)
class ExchangeState(JsonState):
    """What the next batch does, because of what the batch `age` batches ago showed.

    confirmed   batches in a row in which an exchange would have paid
    """

    needed: bool = False
    because: str = "nothing measured yet: rows stay where they are read"
    age: int = 0
    confirmed: int = 0


@dataclass(frozen=True, slots=True)
class Exchange(ControlLaw[ExchangeState, SourceSpread | None, None, bool]):
    """The law: rows are exchanged where balance and whole panes would have saved more than an exchange costs.

    It observes None where rows were exchanged, for then a batch tells nothing of the source, and knows nothing (None) of
    a batch before it comes.

    growth   of a partial with its rows: n^growth of n rows are left; the default for a query that does not tell

    Of a pane in c partitions, whole ones would leave c^(growth - 1) of the rows that are merged, not one in c; and what a
    window costs however few its rows are is not saved at all. Without both, small panes were routed at 1.7 times the
    cost of leaving them (docs/reproductions.md, own-routing).
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
                # One more batch like those before is enough to go on as before.
                because = f"looking at the source again after {PROBE_EVERY} batches"
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
        """Return the seconds that balance and whole panes would have saved, those of an exchange, and partitions a pane."""
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
