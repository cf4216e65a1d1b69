"""The six workloads of paper 3, section 6.1.1, the meta data that a user would give for them, and runs of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from skypane.control.admission import Admission, MetaData
from skypane.control.admission.forecasting import Forecaster
from skypane.types import FloatArray
from skypane.workloads import BurstyFleet, ConstantFleet, FluctuatingFleet
from skypane.workloads.arrivals.sent import Fleet, until
from skypane_papers.rows import only
from skypane_papers.sim.inputs import Inputs, arrivals, simulate_inputs

LOW, HIGH = 20.0, 200.0
"""Bounds of the rates in tuples per second."""
FLUCTUATION, BURST = 120.0, 30.0
"""Period of a fluctuation, and mean length of a burst and of a pause, in seconds."""
EVERY: Final = 10.0
"""Length of an optimisation period in seconds."""
TICK: Final = 0.5
LOAD_LEVEL: Final = 16
"""Number of nodes that the mean load fills, of the 32 nodes in all."""
NODES: Final = 32
SETTLED: Final = 6
"""Number of periods that are left out of means, until the streams are known."""


def _fluctuating(shape: Literal["step", "trend"], total: Literal["constant", "varying"]) -> Callable[[float], Fleet]:
    return lambda slower: FluctuatingFleet(LOW, HIGH, f"{slower * FLUCTUATION:g} seconds", shape, total)


FLEETS: Final[dict[str, Callable[[float], Fleet]]] = {
    "constw": lambda _: ConstantFleet(LOW, HIGH),
    "psfcw": _fluctuating("step", "constant"),
    "ptfcw": _fluctuating("trend", "constant"),
    "sfvar": _fluctuating("step", "varying"),
    "tfvar": _fluctuating("trend", "varying"),
    "bursty": lambda slower: BurstyFleet(LOW + HIGH, f"{slower * BURST:g} seconds", f"{slower * BURST:g} seconds"),
}


def rows(name: str, seconds: float, seed: int, slower: float = 1.0) -> FloatArray:
    """Return tuple counts of a workload, (ticks, streams), with rates that change `slower` times as slowly."""
    fleet = FLEETS[name](slower)
    chunks = list(until(fleet.sent(np.random.default_rng(seed)), round(seconds * 1e6)))
    times, sources = (np.concatenate(column) for column in zip(*chunks, strict=True))
    return arrivals(times, sources, fleet.streams, seconds, TICK)


def stream_metadata(name: str, came: FloatArray, slower: float = 1.0) -> list[MetaData]:
    """Return the meta data of each stream: its bounds, period and transition, or its bursts.

    The bounds are medians over the periods with the lowest and with the highest rates (a third of all periods, or a
    tenth of those with a trend), so that noise does not widen them.
    """
    if name == "bursty":
        period = f"{slower * 2 * BURST:g} seconds"
        return [MetaData(burst_percent=50, burst_peak=LOW + HIGH, period=period)] * came.shape[1]
    ticks = round(EVERY / TICK)
    whole = came[: len(came) // ticks * ticks]
    rates = np.sort(whole.reshape(-1, ticks, came.shape[1]).sum(axis=1) / EVERY, axis=0)
    if name == "constw":
        return [MetaData(expected=float(rate)) for rate in rates.mean(axis=0)]
    part = max(1, len(rates) // (3 if name.endswith(("sfcw", "sfvar")) else 10))
    low, high = np.median(rates[:part], axis=0), np.median(rates[-part:], axis=0)
    transition: Literal["jump", "trend"] = "jump" if name in {"psfcw", "sfvar"} else "trend"
    return [
        MetaData(min=float(least), max=float(most), transition=transition, period=f"{slower * FLUCTUATION:g} seconds")
        for least, most in zip(low, high, strict=True)
    ]


STRATEGIES: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: {"strategy": name} for name in ("PAR", "ARI", "ARD", "DRF")},
    "DRF-M": {"strategy": "DRF-M", "expects": "at the end"},
    "DRF-M, highest": {"strategy": "DRF-M", "expects": "highest"},
    "DRF-M, k = 1": {"strategy": "DRF-M", "expects": "at the end", "ahead": 1},
}
"""Strategies by name: the paper's five, DRF-M with the rate of period t+k expected from meta-data (section 2.5); with the
highest of the next k, the engine's default; and with k = 1."""
FORESEEN: Final = "DRF, foreseen"
"""DRF with the rates that will come in place of forecasts."""
PAPERS: Final = ("PAR", "ARI", "ARD", "DRF", "DRF-M")


class Regime(NamedTuple):
    """How long a run is and how fast rates change in it.

    seconds     length of a run
    slower      factor by which rates change more slowly
    give_back   as of `Admission`
    """

    seconds: float
    slower: float = 1.0
    give_back: float | None = None


def admitted(workload: str, strategies: Sequence[str], regime: Regime, seeds: int) -> pd.DataFrame:
    """Return a row per seed and strategy: means over the periods of a run; `over` is the excess over the packing bound."""
    found = pd.DataFrame([_run(workload, name, regime, seed) for seed in range(seeds) for name in strategies])
    return found.assign(over=found["readers"] / found["fewest"] - 1)


def _run(workload: str, strategy: str, regime: Regime, seed: int) -> dict[str, object]:
    came = rows(workload, regime.seconds, seed, regime.slower)
    capacity = float(came.sum()) / regime.seconds / LOAD_LEVEL
    settings = _foreseen(came) if strategy == FORESEEN else STRATEGIES[strategy]
    policy = Admission(capacity=capacity, max_readers=NODES, give_back=regime.give_back, **settings)
    meta = stream_metadata(workload, came, regime.slower)
    setup = Inputs(came, policy, capacity, max_readers=NODES, meta=meta, every=EVERY)
    shown = pd.DataFrame(simulate_inputs(setup))[SETTLED:].drop(columns=["time", "because"])
    means = {str(column): float(mean) for column, mean in shown.mean().items()}
    return {"workload": workload, "strategy": strategy, "seed": seed, **means}


def _foreseen(came: FloatArray) -> Mapping[str, Any]:
    ticks = round(EVERY / TICK)
    whole = came[: len(came) // ticks * ticks]
    rates = whole.reshape(-1, ticks, came.shape[1]).sum(axis=1).T / EVERY
    return {"strategy": "DRF", "forecaster": Foreseen(rates), "history": rates.shape[1]}


@dataclass(frozen=True, eq=False)
class Foreseen(Forecaster):
    """Forecasts that are right: `rates` holds the (streams, t) rates of all periods, in the order of the streams."""

    rates: FloatArray

    def forecast(self, rates: FloatArray, periods: int) -> FloatArray:
        passed = rates.shape[1] if np.isfinite(rates).any() else 0
        return self.rates[:, np.minimum(np.arange(passed, passed + periods), self.rates.shape[1] - 1)]


def in_seeds(found: pd.DataFrame, less: str, more: str, column: str, workload: str) -> int:
    """Return the number of seeds in which strategy `less` is not above `more`."""
    ours, theirs = (
        only(found, workload=workload, strategy=strategy).set_index("seed")[column] for strategy in (less, more)
    )
    return int((ours <= theirs).sum())


def each(found: pd.DataFrame, column: str, strategy: str, workloads: Sequence[str] = tuple(FLEETS)) -> list[float]:
    """Return a column's means over the seeds, one per workload."""
    return [float(only(found, workload=workload, strategy=strategy)[column].mean()) for workload in workloads]


def beside(names: Sequence[str], *columns: Sequence[float], form: str = ".1f") -> str:
    """Return a line with the name and the values of each item."""
    cells = zip(names, *columns, strict=True)
    return ", ".join(f"{name} {' / '.join(format(value, form) for value in values)}" for name, *values in cells)
