"""Where the laws of control meet the engine: they decide before a batch, observe after it, and are saved with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from skypane.control.exchange import Exchange, Layout
from skypane.control.measured import Measured
from skypane.control.monitoring import Period
from skypane.control.splitting import Panes, Routing, Sample, Splitting
from skypane.control.workers import Workers
from skypane.types import CheckpointError, ConfigError


@dataclass(frozen=True, slots=True)
class ControlState:
    """The laws' states, and the workers.

    asked    the numbers that the job asks for
    workers  those in force: the job's, or what scale() has asked for since
    splitting  the splitting law's own state
    """

    asked: Workers
    workers: Workers
    exchange: Exchange
    splitting: Any


@dataclass(frozen=True, slots=True)
class Steering:
    """What is decided for one batch; no routing: its rows stay where they are read."""

    workers: Workers
    exchange: Exchange
    routing: Routing | None


@dataclass(frozen=True, slots=True)
class Control:
    """The laws of one query, and the workers that its job asks for."""

    splitting: Splitting
    asked: Workers

    def init(self) -> ControlState:
        return ControlState(self.asked, self.asked, Exchange(), self.splitting.init())

    def snapshot(self, state: ControlState) -> dict[str, Any]:
        """Return the state as a JSON value."""
        return {
            "asked": asdict(state.asked),
            "workers": asdict(state.workers),
            "exchange": asdict(state.exchange),
            "splitting": {"law": self.splitting.name, "state": self.splitting.snapshot(state.splitting)},
        }

    def restore(self, snapshot: Mapping[str, Any]) -> ControlState:
        """Return the state whose snapshot this is.

        A job that asks for the numbers that it asked for before goes on with those that scale() has set; a job that
        asks for other ones gets them. Another splitting law than before begins anew.
        """
        try:
            asked, workers = Workers(**snapshot["asked"]), Workers(**snapshot["workers"])
            exchange = Exchange(**snapshot["exchange"])
            law, splitting = snapshot["splitting"]["law"], snapshot["splitting"]["state"]
        except (KeyError, TypeError, ConfigError) as error:
            raise CheckpointError(f"the state of control in the checkpoint cannot be read: {error!r}") from error
        return ControlState(
            self.asked,
            workers if asked == self.asked else self.asked,
            exchange,
            self.splitting.restore(splitting) if law == self.splitting.name else self.splitting.init(),
        )

    def decide(self, state: ControlState) -> tuple[ControlState, Steering]:
        """Return what holds for the next batch, of whose panes nothing is known yet, and the state after that."""
        if not state.exchange.needed:
            return state, Steering(state.workers, state.exchange, None)
        splitting, decision = self.splitting.decide(state.splitting, Panes({}, state.workers.plq))
        return replace(state, splitting=splitting), Steering(state.workers, state.exchange, decision.value)

    def observe(self, state: ControlState, measured: Measured) -> ControlState:
        """Return the state after a batch."""
        layout = None if measured.exchanged else _layout(measured)
        splitting = self.splitting.observe(state.splitting, Sample(_period(measured)))
        return replace(state, exchange=state.exchange.observe(layout, state.workers.plq), splitting=splitting)


def _period(measured: Measured) -> Period | None:
    """Return the batch as a sampling interval; None for the first after a start, whose length is not known.

    Which panes were closed is not in it: a task knows its part of a pane only.
    """
    if not measured.interval or not measured.tasks:
        return None
    rows = tuple(task.rows for task in measured.tasks)
    return Period(measured.interval, tuple(task.busy for task in measured.tasks), processed=rows, scheduled=rows)


def _layout(measured: Measured) -> Layout:
    panes = [work.pane for task in measured.tasks for work in task.panes]
    return Layout(
        rows=sum(task.rows for task in measured.tasks),
        busy=tuple(task.busy for task in measured.tasks),
        panes=len(set(panes)),
        partials=len(panes),
        merge_seconds=measured.merge_seconds,
    )
