"""Figure 12: how evenly panes load 16 nodes when the rate jumps: round robin, and split by rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from skypane.control.splitting import POLICIES
from skypane.control.workers import Workers
from skypane.reproduce.figure import Claim, Figure, Finding, Plot
from skypane.reproduce.rows import only
from skypane.runtime.sim.costs import KERNELS, CostModel
from skypane.runtime.sim.simulation import Setup, simulate
from skypane.runtime.sim.stream import Stream
from skypane.types import IntArray
from skypane.windows import Windows

NODES: Final = 16
PANES: Final = Windows.of("500 ms")
"""A jump of a second is two panes: round robin gives them to two nodes."""
COST: Final[CostModel] = replace(KERNELS, tuple_base=0.9 * NODES / (20_000 * 1.4))
"""A tuple costs what keeps the nodes busy for nine tenths of their time: the paper's query is an expensive one."""
LAWS: Final = {"plain": "PB_RR", "rate-aware": "AS"}
WARM: Final = 40
"""Seconds until sizes of panes are known."""


def event_times(seconds: int, rng: np.random.Generator) -> IntArray:
    """Return ascending microseconds: 18K to 22K tuples in a second, and five times as many with probability 0.1."""
    counts = rng.integers(18_000, 22_001, seconds) * np.where(rng.random(seconds) < 0.1, 5, 1)
    return np.concatenate([at * 1_000_000 + np.sort(rng.integers(0, 1_000_000, n)) for at, n in enumerate(counts)])


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each partitioning and interval."""
    event = event_times(20 if quick else 240, np.random.default_rng(0))
    made = Stream.of(PANES, event, event, 0)
    found = []
    for name, policy in LAWS.items():
        setup = Setup(made, PANES, COST, POLICIES[policy], Workers(NODES, 1), scheduling=None, sampling=1.0)
        for sampled in simulate(setup):
            busy = np.array(sampled.plq.busy)
            if busy.mean() > 0:
                ratio = float(busy.std() / busy.mean())
                found.append({"time": sampled.time, "partitioning": name, "ratio": ratio, "sigma": sampled.sigma})
    return pd.DataFrame(found)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean and maximum of each partitioning's ratio, after the start."""
    later = rows[rows["time"] > min(WARM, rows["time"].max() / 2)]
    table: pd.DataFrame = later.groupby("partitioning", sort=False)["ratio"].agg(["mean", "max"]).reset_index()
    return table


def _ratio(name: str, least: float, most: float, because: str = "") -> Claim:
    def judge(rows: pd.DataFrame) -> Finding:
        found = only(summary(rows), partitioning=name)
        mean = float(found["mean"].iloc[0])
        return Finding(f"{mean:.1%} on average, {float(found['max'].iloc[0]):.0%} at most", least <= mean <= most)

    told = f"below {most:.0%}" if least == 0 else f"about {(least + most) / 2:.0%} on average"
    return Claim(f"{name} pane partitioning has a load-balancing ratio {told}", judge, because)


FIGURE = Figure(
    title="load balance of pane partitioning when the rate jumps five-fold",
    regime=(
        "One splitter, 16 nodes, panes of half a second; 18K to 22K tuples in a second, five times as many in one of ten; every "
        "tuple costs the same, and all of them nine tenths of the nodes' time. The ratio is standard deviation over mean of the nodes' busy time in each second."
    ),
    measure=measure,
    summary=summary,
    claims=(
        _ratio(
            "rate-aware",
            0.0,
            0.07,
            "where the rate is calm no pane is split, and nodes without one have nothing to do (0.6); while what a jump has "
            "left is worked off, all are busy (0)",
        ),
        _ratio(
            "plain", 0.5, 0.7, "a queue evens out what a node is busy with; the paper does not say how long a pane is"
        ),
    ),
    plots=(Plot("", "Figure 12: load-balancing ratio", "time", "ratio", "partitioning"),),
)
