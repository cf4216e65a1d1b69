"""Decide whether rows are exchanged between tasks before they are lifted, and by which splitting policy.

Without an exchange, every source partition is lifted where it is read. An exchange balances the workers, or keeps panes
whole, or both in part; which of it pays for the exchange depends on the policy, so the seconds of the next batch are
predicted for each of them (predictions.py), and for rows that stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.predictions import ExpectedBatch, Prediction, SourceFigures, SourceSpread, predict
from skypane.policy import Decision, Policy
from skypane.snapshots import ADDED, JsonState
from skypane.types import ConfigError

AS_READ: Final = "as read"
"""The name of the way of rows that are not exchanged."""

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
class ExchangeState(JsonState):
    """Whether rows are exchanged, from measurements of the last batch without an exchange, `age` batches ago.

    confirmed   consecutive batches in which an exchange would have paid
    saving      seconds that an exchange would save in the next batch, whatever it costs; None if nothing is predicted
    row_count   rows of the last batch without an exchange
    waited      batches since the last trial in which an exchange was worth one
    patience    number of such batches after which one is made; it doubles with each trial in vain
    source      what the last batch without an exchange showed; None before the first, and in earlier checkpoints
    measured    whether the last batch has shown it, so that it is to be judged
    """

    needed: bool = False
    because: str = "nothing measured yet: rows stay where they are read"
    age: int = 0
    confirmed: int = 0
    saving: float | None = field(default=None, metadata=ADDED)
    row_count: int = field(default=0, metadata=ADDED)
    waited: int = field(default=0, metadata=ADDED)
    patience: int = field(default=PROBE_EVERY, metadata=ADDED)
    source: SourceFigures | None = field(default=None, metadata=ADDED)
    measured: bool = field(default=False, metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Exchange(Policy[ExchangeState, SourceSpread | None, ExpectedBatch, str | None]):
    """Exchange rows by the policy that is predicted to be the fastest, if it is faster than rows that stay.

    The value of a decision is the name of the splitting policy, or None: rows stay where they are read. A policy is
    chosen for every batch, but rows are first exchanged after several batches in a row in which that would have paid.

    The policy observes None after a batch with an exchange, which shows nothing of the source's partitions. Its costs may
    differ from call to call, as batches show them: rows are no longer exchanged once that costs more than it saves. Only
    exchanged batches show the cost, so if it is assumed to be too high, but not by far, some are exchanged to measure it.

    growth   exponent of the partial's size: n rows leave n^growth; the default is for queries that do not declare it
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
            return replace(state, age=state.age + 1, measured=False)
        if not sum(measured.pane_rows):
            return replace(state, age=0, measured=False)
        source = SourceFigures.of(measured, self.costs, self.growth)
        return replace(state, needed=False, age=0, row_count=measured.row_count, source=source, measured=True)

    def worth_routing(self, state: ExchangeState, batch: ExpectedBatch) -> bool:
        """Return whether options are needed to decide: False if no policy, however good, could be chosen."""
        expected = self._predicted(state, replace(batch, options=()))
        return state.needed or (expected is not None and (expected.pays or self._worth_a_trial(expected)))

    def decide(self, state: ExchangeState, known: ExpectedBatch) -> tuple[ExchangeState, Decision[str | None]]:
        """Return the state after the decision, and the policy by which the next batch is exchanged, None for no exchange.

        The options of `known` may be left out if they are not worth_routing().
        """
        expected = self._predicted(state, known)
        if expected is not None:
            state = replace(state, saving=expected.saving)
        if state.needed:
            state = self._exchanging(state, expected)
        elif state.measured and expected is not None:
            state = self._reading(replace(state, measured=False), expected)
        name = None
        if state.needed and known.options:
            name = known.options[0].name if expected is None else expected.fastest
        return state, Decision("exchange", name, state.because, {} if expected is None else _figures(expected))

    def _predicted(self, state: ExchangeState, batch: ExpectedBatch) -> Prediction | None:
        """Return the predicted seconds; None without a measurement, or without an expected row."""
        if state.source is None or not sum(batch.rows.values()):
            return None
        return predict(state.source, batch, self.costs, self.growth)

    def _reading(self, state: ExchangeState, expected: Prediction) -> ExchangeState:
        """Return the state before the batch after one without an exchange."""
        because = _in_words(expected)
        state = replace(state, because=because)
        if expected.routed and expected.pays:
            confirmed = min(state.confirmed + 1, CONFIRM)
            return replace(state, needed=confirmed >= CONFIRM, confirmed=confirmed, waited=0, patience=PROBE_EVERY)
        waited = state.waited + self._worth_a_trial(expected)
        if waited >= state.patience and expected.routed:
            because += f": {TRIAL} batches are exchanged to measure that"
            return replace(state, needed=True, because=because, confirmed=0, waited=0)
        return replace(state, confirmed=0, waited=waited)

    def _exchanging(self, state: ExchangeState, expected: Prediction | None) -> ExchangeState:
        """Return the state before the batch after one with an exchange."""
        if state.age >= PROBE_EVERY:
            # One more batch in which an exchange pays is enough to resume it.
            because = f"measuring the source again after {PROBE_EVERY} batches"
            return replace(state, needed=False, because=because, age=0, confirmed=CONFIRM - 1)
        if expected is None or not expected.routed or state.age < TRIAL:
            return state
        because = _in_words(expected)
        if expected.pays:
            return replace(state, because=because)
        patience = min(2 * state.patience, LONGEST_WAIT)
        return replace(state, needed=False, because=because, age=0, confirmed=0, waited=0, patience=patience)

    def _worth_a_trial(self, expected: Prediction) -> bool:
        return expected.saving > WORTH_A_TRIAL * expected.seconds.exchange


def _figures(expected: Prediction) -> Mapping[str, float]:
    """Return the predicted seconds of each way, the exchange's part of them, and what it would save if it were free."""
    ways = {name: seconds.total for name, seconds in expected.routed.items()}
    exchange = expected.best_case.exchange
    return {AS_READ: expected.as_read.total, **ways, "exchange": exchange, "saving": expected.saving}


def _in_words(expected: Prediction) -> str:
    read, routed = expected.as_read, expected.seconds
    if not expected.routed:
        return f"as read {read}: an exchange takes at least {routed}"
    if not expected.pays:
        return f"as read {read}: {expected.fastest}, the fastest exchange, takes {routed}"
    reason = "balance" if read.lift - routed.lift >= read.merge - routed.merge else "fewer merges"
    return f"{expected.fastest} for {reason}: {routed}, as read {read}"
