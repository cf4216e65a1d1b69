"""The six workloads of paper 3, section 6.1.1, the meta data that a user would give for them, and runs of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

import numpy as np
import pandas as pd

from skypane.control.admission import Admission, MetaData
from skypane.types import FloatArray
from skypane.workloads import BurstyFleet, ConstantFleet, FluctuatingFleet
from skypane.workloads.arrivals.sent import Fleet, until
from skypane_papers.rows import at
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


def admitted(
    workload: str,
    strategies: Sequence[str],
    seconds: float,
    seeds: int,
    slower: float = 1.0,
    give_back: float | None = None,
) -> pd.DataFrame:
    """Return one row per strategy: means over the periods of all runs; `over` is the excess over the packing bound."""
    found = [_run(workload, name, seconds, seed, slower, give_back) for seed in range(seeds) for name in strategies]
    made = pd.DataFrame(found).groupby(["workload", "strategy"], sort=False, as_index=False).mean()
    return made.assign(over=made["readers"] / made["fewest"] - 1)


def _run(
    workload: str, strategy: str, seconds: float, seed: int, slower: float, give_back: float | None
) -> dict[str, object]:
    came = rows(workload, seconds, seed, slower)
    capacity = float(came.sum()) / seconds / LOAD_LEVEL
    policy = Admission(capacity=capacity, max_readers=NODES, strategy=strategy, give_back=give_back)
    setup = Inputs(came, policy, capacity, max_readers=NODES, meta=stream_metadata(workload, came, slower), every=EVERY)
    shown = pd.DataFrame(simulate_inputs(setup))[SETTLED:].drop(columns=["time", "because"])
    means = {str(column): float(mean) for column, mean in shown.mean().items()}
    return {"workload": workload, "strategy": strategy, **means}


def each(found: pd.DataFrame, figure: str, strategy: str, workloads: Sequence[str] = tuple(FLEETS)) -> list[float]:
    """Return a column's values of a strategy, one per workload."""
    return [at(found, figure, workload=workload, strategy=strategy) for workload in workloads]


def beside(names: Sequence[str], *columns: Sequence[float], form: str = ".1f") -> str:
    """Return a line with the name and the values of each item."""
    cells = zip(names, *columns, strict=True)
    return ", ".join(f"{name} {' / '.join(format(value, form) for value in values)}" for name, *values in cells)
