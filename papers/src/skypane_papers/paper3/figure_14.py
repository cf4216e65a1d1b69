"""Figure 14: latency with DRF-M, ARD and 32 fixed nodes, while the load goes from 4 nodes to 32 and back, and else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from skypane.control.admission import Admission, MetaData
from skypane.types import FloatArray, IntArray
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.many_inputs import EVERY, FLEETS, LOAD_LEVEL, TICK, rows, stream_metadata
from skypane_papers.rows import at, only
from skypane_papers.sim.inputs import Inputs, simulate_inputs

LOWEST, HIGHEST, NODES, STREAMS = 4, 32, 40, 80
BOUND: Final = 5.0
"""Seconds of latency that are allowed (as in Linear Road)."""
CAPACITY: Final = 1_000.0
HANDLED: Final = 0.9
"""Share of its capacity that a node which handles its load is busy with."""
WARM: Final = 60.0
"""Seconds until the random assignment at the start is undone."""
RISING, FULL = "4 to 32 nodes", "the same, nodes full"
STATIC: Final = "32 nodes"


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each period, load and strategy."""
    found = [_rising(name, busy, 200.0 if quick else 2400.0, seed) for name, busy in ((RISING, HANDLED), (FULL, 1.0))]
    found += [_fleet(name, 80.0 if quick else 600.0, seed) for name in FLEETS]
    return pd.concat(found, ignore_index=True)


def _rising(name: str, busy: float, seconds: float, seed: int) -> pd.DataFrame:
    """Return what is shown while the load rises and falls; at its top it takes all of 32 nodes, each `busy`."""
    rng = np.random.default_rng(3 + seed)
    share = rng.uniform(0.2, 1.0, STREAMS)
    middle = (np.arange(round(seconds / TICK)) + 0.5) * TICK
    load = LOWEST + (HIGHEST - LOWEST) * (1 - np.abs(2 * middle / seconds - 1))
    rates = load[:, None] * busy * CAPACITY * (share / share.sum())[None, :]
    came = rng.poisson(rates * TICK).astype(np.float64)
    meta = [MetaData(min=float(low), max=float(high), transition="trend")
            for low, high in zip(rates.min(axis=0), rates.max(axis=0), strict=True)]  # fmt: skip
    return _shown(name, came, meta, CAPACITY, 1 - busy, rng.integers(1, 1 + LOWEST, STREAMS))


def _fleet(name: str, seconds: float, seed: int) -> pd.DataFrame:
    came = rows(name, seconds, seed)
    capacity = float(came.sum()) / seconds / LOAD_LEVEL / HANDLED
    return _shown(name, came, stream_metadata(name, came), capacity, 1 - HANDLED, None)


def _shown(
    load: str, came: FloatArray, meta: Sequence[MetaData], capacity: float, headroom: float, start: IntArray | None
) -> pd.DataFrame:
    """Return a row for each period and strategy; `start`, the nodes at which the streams are first."""
    static = Inputs(came, None, capacity, max_readers=HIGHEST, start=_even(came.mean(axis=0)), every=EVERY)
    setups = {
        name: Inputs(
            came, _policy(name, capacity, headroom), capacity, max_readers=NODES, meta=meta, start=start, every=EVERY
        )
        for name in ("DRF-M", "ARD")
    }
    return pd.concat(
        pd.DataFrame(simulate_inputs(setup)).drop(columns="because").assign(load=load, strategy=name)
        for name, setup in (setups | {STATIC: static}).items()
    )


def _policy(strategy: str, capacity: float, headroom: float) -> Admission:
    return Admission(
        capacity=capacity, max_readers=NODES, give_back=0.85, strategy=strategy, headroom=headroom, expects="at the end"
    )


def _even(rates: FloatArray) -> IntArray:
    """Return the node of each stream: the largest first, each to the node with the least so far."""
    nodes, load = np.zeros(len(rates), np.int64), np.zeros(HIGHEST)
    for stream in np.argsort(-rates):
        nodes[stream] = load.argmin()
        load[nodes[stream]] += rates[stream]
    return nodes + 1


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return what each strategy comes to after the start, load by load."""
    later = found[found["time"] > WARM]
    later = later.assign(violated=later["latency_most"] > BOUND)
    columns = ["latency", "latency_most", "violated", "readers", "redirected", "buffered"]
    return later.groupby(["load", "strategy"], sort=False)[columns].mean().reset_index()


def _bound(found: pd.DataFrame) -> Finding:
    later = only(found[found["time"] > WARM], strategy="DRF-M", load=RISING)
    short = later[later["latency_most"] > BOUND]
    ours = f"{later['latency'].mean():.4f} s on average; {len(short)} of {len(later)} periods with a row beyond 5 s"
    return Finding(ours, len(short) <= len(later) * 0.05)


def _latencies(found: pd.DataFrame, strategy: str, loads: Sequence[str]) -> list[float]:
    table = summary(found)
    return [at(table, "latency", strategy=strategy, load=load) for load in loads]


def _below_ard(found: pd.DataFrame) -> Finding:
    (ours,), (theirs,) = (_latencies(found, name, [RISING]) for name in ("DRF-M", "ARD"))
    full = " and ".join(f"{_latencies(found, name, [FULL])[0]:.3f}" for name in ("DRF-M", "ARD"))
    return Finding(f"{ours:.4f} s and {theirs:.4f} s on average; where nodes are full {full} s", ours < theirs)


def _static(found: pd.DataFrame) -> Finding:
    table = summary(found)
    (static,), (ours,) = (_latencies(found, name, [RISING]) for name in (STATIC, "DRF-M"))
    nodes = at(table, "readers", strategy="DRF-M", load=RISING)
    full = " and ".join(f"{_latencies(found, name, [FULL])[0]:.3f}" for name in (STATIC, "DRF-M"))
    told = f"{static:.4f} s with 32 nodes, {ours:.4f} s with {nodes:.1f} on average; where nodes are full {full} s"
    return Finding(told, static < ours)


FIGURE = Figure(
    title="latency and nodes while the load rises from 4 nodes to 32 and falls",
    regime=(
        f"80 streams with a trend, {CAPACITY:,.0f} tuples/s a node; up and down in 40 minutes, periods of 10 s, at random nodes "
        f"at the start. A node that handles its load is busy for {HANDLED:.0%} of its time ({FULL}: all of it). Latency is waiting "
        f"at nodes and at clients; up to {NODES} nodes, since 80 streams do not fill 32 to the brim; a node is given back where "
        "the others have room up to 85 % (the paper does not say when it is). The same for the workloads of figure 10, which "
        f"fill {LOAD_LEVEL} nodes."
    ),
    measure=measure,
    seeds=3,
    summary=summary,
    claims=(
        Claim("DRF-M keeps latency under 5 s except for short violations", _bound),
        Claim("DRF-M has a lower latency than ARD", _below_ard),
        Claim("32 static nodes have a lower latency, with far more nodes than the load needs", _static),
    ),
    plots=(
        Plot("a", "Figure 14: latency of a tuple (s)", "time", "latency", "strategy", where={"load": RISING}, level=BOUND),
        Plot("b", "Figure 14: nodes", "time", "readers", "strategy", where={"load": RISING}),
    ),
)  # fmt: skip
