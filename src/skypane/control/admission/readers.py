"""How many readers keep a bound on latency: equation 1a of paper 3, for those who read.

    (rate + backlog / L) c / n = 1 - H        what comes, and what waits already, which is to be worked off within L

c, the seconds that a reader takes for a row, is the least that any of the last batches has shown: a batch has costs that
do not grow with its rows, and the largest batches show least of them. Fewer readers are given back one at a time, after
they would have done for some batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from skypane.control.elasticity.model import ModelPolicy
from skypane.control.elasticity.situation import Situation
from skypane.control.law import ControlLaw, Decision
from skypane.control.snapshots import JsonState
from skypane.control.workers import Workers
from skypane.types import ConfigError, Duration, micros


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch has shown: its rows, the seconds that it took, and how many readers it had."""

    rows: int
    seconds: float
    readers: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is there to be read: rows per second that are forecast to come, and rows that wait."""

    rate: float
    backlog: float


@dataclass(frozen=True, slots=True)
class ReadersState(JsonState):
    """What the law remembers: how many readers there are, seconds per row of the last batches, and how long fewer do."""

    readers: int
    costs: tuple[float, ...] = ()
    calm: int = 0


@dataclass(frozen=True)
class Readers(ControlLaw[ReadersState, Batch, Waiting, int]):
    """The fewest readers that keep the bound, from one to `most`; all of them until a batch was seen.

    latency    L, the bound on how long a row waits
    headroom   H, the share of a reader that is kept free
    calm       batches for which fewer must do before one is given back
    history    batches that are remembered
    dry_run    decisions are told, and not made
    """

    most: int
    latency: Duration = "5 seconds"
    headroom: float = 0.1
    calm: int = 6
    history: int = 32
    dry_run: bool = False

    State = ReadersState

    def __post_init__(self) -> None:
        for name in ("most", "calm", "history"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise ConfigError(f"{name} is a whole number of at least 1, got {getattr(self, name)!r}")
        object.__setattr__(self, "latency", micros(self.latency, "latency"))
        ModelPolicy(self.headroom, self.latency)  # which refuses what cannot be

    def init(self) -> ReadersState:
        return ReadersState(self.most)

    def observe(self, state: ReadersState, measured: Batch) -> ReadersState:
        if measured.rows <= 0 or measured.seconds <= 0:
            return state
        cost = measured.seconds * measured.readers / measured.rows
        return replace(state, costs=(*state.costs, cost)[-self.history :])

    def decide(self, state: ReadersState, known: Waiting) -> tuple[ReadersState, Decision[int]]:
        """Decide on the next batch's readers."""
        if not state.costs:
            return state, Decision("readers", state.readers, f"no batch was seen: all {state.readers} readers", {})
        now, cost = Workers(state.readers, 1), min(state.costs)
        situation = Situation(now, 0.0, 0.0, 1.0, rate=known.rate, backlog=round(known.backlog), cost_plq=cost)
        wanted = min(ModelPolicy(self.headroom, self.latency).propose(situation, self.most + 1).workers.plq, self.most)
        calm = state.calm + 1 if wanted < state.readers else 0
        after = max(wanted, state.readers - (calm >= self.calm))
        because = (
            f"{known.rate:.0f} rows/s and {known.backlog:.0f} that wait x {cost * 1e6:.1f} us, bound {micros(self.latency).words} "
            f"-> {wanted} of {self.most} readers, {state.readers} -> {after}"
        )
        if self.dry_run and after != state.readers:
            because, after = f"{because} (dry run: stays)", state.readers
        figures = {"rate": known.rate, "backlog": known.backlog, "cost": cost, "wanted": float(wanted)}
        again = 0 if after < state.readers else calm
        return ReadersState(after, state.costs, again), Decision("readers", after, because, figures)
