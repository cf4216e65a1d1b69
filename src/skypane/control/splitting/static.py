"""Static policies: panes or tuples to workers in turn (paper 1, sections 4.1.2 and 4.3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skypane.control.splitting.routing import Routing
from skypane.control.splitting.splitting_policy import NoState, SplittingPolicy, UpcomingBatch
from skypane.policy import Decision
from skypane.snapshots import JsonState


@dataclass(frozen=True, slots=True)
class RoundRobinState(JsonState):
    """Tuples sent so far."""

    sent: int = 0


@dataclass(frozen=True)
class PaneRoundRobin(SplittingPolicy[NoState]):
    """PB_RR: panes to workers in turn; least merging, but a burst goes to one worker.

    >>> workers = sp.WorkerOptions(plq_workers=2, splitting=sp.PaneRoundRobin())  # or splitting="PB_RR"
    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", workers=workers
    ... )
    """

    State = NoState
    name: ClassVar[str] = "PB_RR"

    def init(self) -> NoState:
        return NoState()

    def decide(self, state: NoState, known: UpcomingBatch) -> tuple[NoState, Decision[Routing]]:
        return state, Decision("splitting", Routing(known.workers), "each pane has one owner, in turn", {"sigma": 1.0})

    def send(self, state: NoState, pane: int, loads: Sequence[int]) -> tuple[NoState, int]:
        return state, pane % len(loads)


@dataclass(frozen=True)
class TupleRoundRobin(SplittingPolicy[RoundRobinState]):
    """TB_RR: rows to workers in turn; perfect balance, but every pane is merged from all workers.

    >>> workers = sp.WorkerOptions(plq_workers=2, splitting=sp.TupleRoundRobin())  # or splitting="TB_RR"
    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", workers=workers
    ... )
    """

    State = RoundRobinState
    name: ClassVar[str] = "TB_RR"

    def init(self) -> RoundRobinState:
        return RoundRobinState()

    def decide(self, state: RoundRobinState, known: UpcomingBatch) -> tuple[RoundRobinState, Decision[Routing]]:
        routing = Routing(known.workers, everywhere=True, turn=state.sent % known.workers)
        because = f"every pane is split over all {known.workers} workers"
        after = RoundRobinState(state.sent + sum(known.rows.values()))
        return after, Decision("splitting", routing, because, {"sigma": float(known.workers)})

    def send(self, state: RoundRobinState, pane: int, loads: Sequence[int]) -> tuple[RoundRobinState, int]:  # noqa: ARG002
        return RoundRobinState(state.sent + 1), state.sent % len(loads)
