"""Number of readers that keeps a bound on latency: equation 1a of paper 3, applied to readers.

    (rate + backlog / L) c / n = 1 - H        arriving rows, and the backlog, which must be read within L

c is the marginal cost of a row, in seconds of a reader: the slope of the last batches' seconds over their rows per
reader. The slope excludes the fixed costs of a batch, which more readers would not reduce. If all batches had about the
same number of rows, c is the smallest quotient of seconds and rows. Readers are removed one at a time, after fewer
would have sufficed for some batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import fmean

from skypane.control.sizing import check_sizing, workers_for
from skypane.policy import Decision, Policy
from skypane.snapshots import JsonState, renamed
from skypane.types import ConfigError, Duration, micros, truth

_APART = 1.25
"""Ratio between the largest and the smallest rows per reader, below which the slope is only noise."""


@dataclass(frozen=True, slots=True)
class ReaderBatch:
    """Measurements of a batch: its rows, its duration in seconds, and its number of readers."""

    rows: int
    seconds: float
    readers: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Rows to read: the rate ahead in rows per second, and the rows that wait.

    because   the reason, if the rate is higher than forecast because inputs state it; else ""
    """

    rate: float
    backlog: float
    because: str = ""


@dataclass(frozen=True, slots=True)
class ReadersState(JsonState):
    """State of the policy.

    readers        current number of readers
    costs, loads   reader-seconds per row, and rows per reader, of the last batches
    surplus        consecutive batches for which fewer readers would have sufficed
    """

    readers: int
    costs: tuple[float, ...] = ()
    surplus: int = field(default=0, metadata=renamed("calm"))
    loads: tuple[float, ...] = ()

    @property
    def cost(self) -> float:
        """c, in seconds; at least one batch must have been observed."""
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
class Readers(Policy[ReadersState, ReaderBatch, Backlog, int]):
    """The fewest readers that keep the latency bound; `max_readers` until a batch has been observed.

    latency       L, the bound on the waiting time of a row
    headroom      H, the share of a reader that stays free
    idle_timeout  consecutive batches for which fewer readers must suffice before one is removed
    history       batches that are kept
    dry_run       report decisions without applying them

    >>> readers = sp.Readers(max_readers=4, latency="5 seconds")
    >>> rows = sp.inputs(spark, ["shop-offers/*.json"], "ts timestamp, price double", readers=readers)
    >>> rows.isStreaming
    True
    """

    max_readers: int
    latency: Duration = "5 seconds"
    headroom: float = 0.1
    idle_timeout: int = 6
    history: int = 32
    dry_run: bool = False

    State = ReadersState

    def __post_init__(self) -> None:
        for name in ("max_readers", "idle_timeout", "history"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {getattr(self, name)!r}")
        object.__setattr__(self, "latency", micros(self.latency, "latency"))
        object.__setattr__(self, "dry_run", truth(self.dry_run, "dry_run"))
        check_sizing(self.headroom, self.latency)

    def init(self) -> ReadersState:
        return ReadersState(self.max_readers)

    def observe(self, state: ReadersState, measured: ReaderBatch) -> ReadersState:
        if measured.rows <= 0 or measured.seconds <= 0:
            return state
        cost, load = measured.seconds * measured.readers / measured.rows, measured.rows / measured.readers
        costs, loads = (*state.costs, cost), (*state.loads, load)
        return replace(state, costs=costs[-self.history :], loads=loads[-self.history :])

    def decide(self, state: ReadersState, known: Backlog) -> tuple[ReadersState, Decision[int]]:
        """Return the state after the decision, and the number of readers of the next batch."""
        if not state.costs:
            return state, Decision("readers", state.readers, f"no batch measured yet: all {state.readers} readers", {})
        cost, backlog = state.cost, round(known.backlog)
        needed = workers_for(known.rate, cost, self.headroom, backlog=backlog, latency=self.latency)
        wanted = min(needed, self.max_readers)
        surplus = state.surplus + 1 if wanted < state.readers else 0
        after = max(wanted, state.readers - (surplus >= self.idle_timeout))
        because = (
            f"{known.rate:.0f} rows/s{known.because and f' ({known.because})'} and {known.backlog:.0f} waiting x {cost * 1e6:.1f} us, bound "
            f"{micros(self.latency).words} -> {wanted} of {self.max_readers} readers, {state.readers} -> {after}"
        )
        if self.dry_run and after != state.readers:
            because, after = f"{because} (dry run: stays)", state.readers
        figures = {"rate": known.rate, "backlog": known.backlog, "cost": cost, "wanted": float(wanted)}
        again = 0 if after < state.readers else surplus
        return replace(state, readers=after, surplus=again), Decision("readers", after, because, figures)
