"""Where the laws of control meet the engine: they decide before a batch, observe after it, and are saved with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from skypane.control.exchange import Exchange, Layout
from skypane.control.measured import Measured
from skypane.control.splitting import Routing, Splitting
from skypane.control.workers import Workers
from skypane.types import CheckpointError, ConfigError


@dataclass(frozen=True, slots=True)
class ControlState:
    """The laws' states, and the workers.

    asked    the numbers that the job asks for
    workers  those in force: the job's, or what scale() has asked for since
    """

    asked: Workers
    workers: Workers
    exchange: Exchange

    def snapshot(self) -> dict[str, Any]:
        return asdict(self)


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
        return ControlState(self.asked, self.asked, Exchange())

    def restore(self, snapshot: Mapping[str, Any]) -> ControlState:
        """Return the state whose snapshot this is.

        A job that asks for the numbers that it asked for before goes on with those that scale() has set; a job that
        asks for other ones gets them.
        """
        try:
            asked, workers = Workers(**snapshot["asked"]), Workers(**snapshot["workers"])
            exchange = Exchange(**snapshot["exchange"])
        except (KeyError, TypeError, ConfigError) as error:
            raise CheckpointError(f"the state of control in the checkpoint cannot be read: {error!r}") from error
        return ControlState(self.asked, workers if asked == self.asked else self.asked, exchange)

    def decide(self, state: ControlState) -> Steering:
        """Return what holds for the next batch."""
        routing = self.splitting.route(state.workers.plq) if state.exchange.needed else None
        return Steering(state.workers, state.exchange, routing)

    def observe(self, state: ControlState, measured: Measured) -> ControlState:
        """Return the state after a batch."""
        layout = None if measured.exchanged else _layout(measured)
        return replace(state, exchange=state.exchange.observe(layout, state.workers.plq))


def _layout(measured: Measured) -> Layout:
    panes = [work.pane for task in measured.tasks for work in task.panes]
    return Layout(
        rows=sum(task.rows for task in measured.tasks),
        busy=tuple(task.busy for task in measured.tasks),
        panes=len(set(panes)),
        partials=len(panes),
        merge_seconds=measured.merge_seconds,
    )
