"""Where the laws of control meet the engine: they decide before a batch, observe after it, and are saved with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.exchange import Exchange, ExchangeState, SourceSpread
from skypane.control.law import Decision
from skypane.control.measured import Measured, PaneWork
from skypane.control.monitoring import Period
from skypane.control.snapshots import from_json, to_json
from skypane.control.splitting import Panes, Routing, Sample, Splitting
from skypane.control.splitting.expected import ExpectedPanes
from skypane.control.workers import Workers
from skypane.types import CheckpointError, ConfigError

_SHORTEST = 1e-3
"""Seconds that an interval counts for at least: with less left of it, the stage is overloaded beyond any measure."""


@dataclass(frozen=True, slots=True)
class ControlState:
    """The laws' states, and the workers.

    asked      the numbers that the job asks for
    workers    those in force: the job's, or what scale() has asked for since
    splitting  the splitting law's own state
    expected   the panes of the next batch
    """

    asked: Workers
    workers: Workers
    exchange: ExchangeState
    splitting: Any
    expected: ExpectedPanes = field(default_factory=ExpectedPanes)


@dataclass(frozen=True, slots=True)
class Steering:
    """What is decided for one batch; no routing: its rows stay where they are read."""

    workers: Workers
    exchange: Decision[bool]
    routing: Routing | None
    splitting: str
    splitting_because: str


@dataclass(frozen=True, slots=True)
class Control:
    """The laws of one query, and the workers that its job asks for."""

    splitting: Splitting
    asked: Workers
    costs: Costs = DEFAULT_COSTS

    @property
    def exchange(self) -> Exchange:
        return Exchange(self.costs)

    def init(self) -> ControlState:
        return ControlState(self.asked, self.asked, self.exchange.init(), self.splitting.init())

    def snapshot(self, state: ControlState) -> dict[str, Any]:
        """Return the state as a JSON value."""
        return {
            "asked": asdict(state.asked),
            "workers": asdict(state.workers),
            "exchange": self.exchange.snapshot(state.exchange),
            "splitting": {"law": self.splitting.name, "state": self.splitting.snapshot(state.splitting)},
            "expected": to_json(state.expected),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> ControlState:
        """Return the state whose snapshot this is.

        A job that asks for the numbers that it asked for before goes on with those that scale() has set; a job that
        asks for other ones gets them. Another splitting law than before begins anew.
        """
        try:
            asked, workers = Workers(**snapshot["asked"]), Workers(**snapshot["workers"])
            exchange = self.exchange.restore(snapshot["exchange"])
            law, splitting = snapshot["splitting"]["law"], snapshot["splitting"]["state"]
        except (KeyError, TypeError, ConfigError) as error:
            raise CheckpointError(f"the state of control in the checkpoint cannot be read: {error!r}") from error
        return ControlState(
            self.asked,
            workers if asked == self.asked else self.asked,
            exchange,
            self.splitting.restore(splitting) if law == self.splitting.name else self.splitting.init(),
            from_json(ExpectedPanes, snapshot.get("expected")),
        )

    def decide(self, state: ControlState) -> tuple[ControlState, Steering]:
        """Return what holds for the next batch, by the panes that it is expected to have, and the state after that."""
        moved, exchange = self.exchange.decide(state.exchange)
        state = replace(state, exchange=moved)
        if not exchange.value:
            because = "rows stay where they are read"
            return state, Steering(state.workers, exchange, None, self.splitting.name, because)
        expected = state.expected.next()
        # A task's partitions end with its batch: no pane of the batch before is being filled any more.
        panes = Panes(expected, state.workers.plq, open_from=max(expected, default=0) + 1)
        splitting, decision = self.splitting.decide(state.splitting, panes)
        steering = Steering(state.workers, exchange, decision.value, self.splitting.name, decision.because)
        return replace(state, splitting=splitting), steering

    def observe(self, state: ControlState, measured: Measured) -> ControlState:
        """Return the state after a batch."""
        spread = None if measured.exchanged else _spread(measured, state.workers.plq)
        row_counts: Counter[int] = Counter()
        for work in _panes(measured):
            row_counts[work.pane] += work.rows
        # Where rows stayed where they were read, the source cut the panes, not the law: it learns how large they are.
        sizes = (work.rows for work in _panes(measured)) if measured.exchanged else row_counts.values()
        sample = Sample(period_of(measured) if measured.exchanged else None, tuple(sizes))
        return replace(
            state,
            exchange=self.exchange.observe(state.exchange, spread),
            splitting=self.splitting.observe(state.splitting, sample),
            expected=state.expected.observe(row_counts),
        )


def period_of(measured: Measured) -> Period | None:
    """Return the batch as a sampling interval; None for the first after a start, whose length is not known.

    The interval is that in which the batch's rows came, less what the other steps of a batch take of it. A pane counts
    as closed with its batch: what comes later of it makes partitions of its own.
    """
    if not measured.interval or not measured.tasks:
        return None
    row_counts = tuple(task.rows for task in measured.tasks)
    panes = [work.pane for work in _panes(measured)]
    return Period(
        seconds=max(measured.interval - measured.merge_seconds, _SHORTEST),
        busy=tuple(task.busy for task in measured.tasks),
        processed=row_counts,
        scheduled=row_counts,
        panes=len(set(panes)),
        partitions=len(panes),
    )


def _panes(measured: Measured) -> Iterator[PaneWork]:
    return (work for task in measured.tasks for work in task.panes)


def _spread(measured: Measured, workers: int) -> SourceSpread:
    panes = [work.pane for work in _panes(measured)]
    return SourceSpread(
        row_count=sum(task.rows for task in measured.tasks),
        busy=tuple(task.busy for task in measured.tasks),
        panes=len(set(panes)),
        partials=len(panes),
        merge_seconds=measured.merge_seconds,
        workers=workers,
    )
