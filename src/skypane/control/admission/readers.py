"""How many readers keep a bound on latency: equation 1a of paper 3, for those who read.

    (rate + backlog / L) c / n = 1 - H        what comes, and what waits already, which is to be worked off within L

c, the seconds that a reader takes for a row more, is the slope of the last batches' seconds over their rows per reader: a
batch has costs that do not grow with its rows, and which no reader more would make less. Where all batches had about as many
rows, it is the least quotient of both. Fewer readers are given back one at a time, after they would have done for some batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean

from skypane.control.elasticity.model import ModelPolicy
from skypane.control.elasticity.situation import Situation
from skypane.control.law import ControlLaw, Decision
from skypane.control.snapshots import JsonState
from skypane.control.workers import Workers
from skypane.types import ConfigError, Duration, micros

_APART = 1.25
"""Times as many rows per reader as in another batch: below it, a slope is that of the noise."""


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
    """What the law remembers.

    readers        how many there are
    costs, loads   of the last batches: reader-seconds per row, and rows per reader
    calm           for how many batches fewer readers would have done
    """

    readers: int
    costs: tuple[float, ...] = ()
    calm: int = 0
    loads: tuple[float, ...] = ()

    @property
    def cost(self) -> float:
        """c, in seconds; some batch must have been seen."""
        least = min(self.costs)
        if len(self.loads) < len(self.costs) or max(self.loads) < _APART * min(self.loads):
            return least
        mean = fmean(self.loads)
        spent = [cost * load for cost, load in zip(self.costs, self.loads, strict=True)]
        slope = sum((load - mean) * took for load, took in zip(self.loads, spent, strict=True)) / sum(
            (load - mean) * (load - mean) for load in self.loads
        )
        return slope if 0 < slope < least else least


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
        cost, load = measured.seconds * measured.readers / measured.rows, measured.rows / measured.readers
        costs, loads = (*state.costs, cost), (*state.loads, load)
        return replace(state, costs=costs[-self.history :], loads=loads[-self.history :])

    def decide(self, state: ReadersState, known: Waiting) -> tuple[ReadersState, Decision[int]]:
        """Decide on the next batch's readers."""
        if not state.costs:
            return state, Decision("readers", state.readers, f"no batch was seen: all {state.readers} readers", {})
        now, cost = Workers(state.readers, 1), state.cost
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
        return replace(state, readers=after, calm=again), Decision("readers", after, because, figures)
