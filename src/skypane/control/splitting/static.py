"""The static policies: panes to workers in turn, or tuples to workers in turn (paper 1, sections 4.1.2 and 4.3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skypane.control.law import Decision, Stateless
from skypane.control.snapshots import JsonState
from skypane.control.splitting.law import Panes, Sample, SplittingLaw
from skypane.control.splitting.routing import Routing


@dataclass(frozen=True, slots=True)
class Turn(JsonState):
    """Tuples sent so far."""

    sent: int = 0


@dataclass(frozen=True)
class PaneRoundRobin(SplittingLaw[Stateless]):
    """PB_RR: panes to workers in turn; least merging afterwards, but a burst lands on one worker."""

    State = Stateless
    name: ClassVar[str] = "PB_RR"

    def init(self) -> Stateless:
        return Stateless()

    def observe(self, state: Stateless, measured: Sample) -> Stateless:  # noqa: ARG002 - nothing is learnt
        return state

    def decide(self, state: Stateless, known: Panes) -> tuple[Stateless, Decision[Routing]]:
        return state, Decision("splitting", Routing(known.workers), "each pane has one owner, in turn", {"sigma": 1.0})

    def send(self, state: Stateless, pane: int, loads: Sequence[int]) -> tuple[Stateless, int]:
        return state, pane % len(loads)


@dataclass(frozen=True)
class TupleRoundRobin(SplittingLaw[Turn]):
    """TB_RR: rows to workers in turn; perfect balance, but every pane is merged from every worker."""

    State = Turn
    name: ClassVar[str] = "TB_RR"

    def init(self) -> Turn:
        return Turn()

    def observe(self, state: Turn, measured: Sample) -> Turn:  # noqa: ARG002 - nothing is learnt
        return state

    def decide(self, state: Turn, known: Panes) -> tuple[Turn, Decision[Routing]]:
        routing = Routing(known.workers, everywhere=True, turn=state.sent % known.workers)
        because = f"every pane is split over all {known.workers} workers"
        after = Turn(state.sent + sum(known.rows.values()))
        return after, Decision("splitting", routing, because, {"sigma": float(known.workers)})

    def send(self, state: Turn, pane: int, loads: Sequence[int]) -> tuple[Turn, int]:  # noqa: ARG002
        return Turn(state.sent + 1), state.sent % len(loads)
