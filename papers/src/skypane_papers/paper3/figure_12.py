"""Figure 12: the balance of panes on 16 nodes when the rate jumps: round robin, and split by rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from skypane.control.parallelism import Workers
from skypane.control.splitting import POLICIES
from skypane.runtime.sim.cost_models import KERNELS, CostModel
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.runtime.sim.simulation import SimulationSetup, simulate
from skypane.types import FloatArray, IntArray
from skypane.windows import Windows
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only

NODES: Final = 16
PANES: Final = Windows.of("500 ms")
"""A jump of a second is two panes: round robin gives them to two nodes."""
COST: Final[CostModel] = replace(KERNELS, tuple_base=0.9 * NODES / (20_000 * 1.4))
"""A tuple costs what keeps the nodes busy for nine tenths of their time: the paper's query is an expensive one."""
TRIED: Final = {"plain": "PB_RR", "rate-aware": "AS"}
SPAN: Final = 16
"""Seconds in which each node has two panes in turn."""
WARM: Final = 40
"""Seconds until sizes of panes are known."""


def event_times(seconds: int, rng: np.random.Generator) -> IntArray:
    """Return ascending microseconds: 18K to 22K tuples in a second, and five times as many with probability 0.1."""
    counts = rng.integers(18_000, 22_001, seconds) * np.where(rng.random(seconds) < 0.1, 5, 1)
    return np.concatenate([at * 1_000_000 + np.sort(rng.integers(0, 1_000_000, n)) for at, n in enumerate(counts)])


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each partitioning and second: the ratio in that second, and in the last `SPAN`."""
    event = event_times(20 if quick else 240, np.random.default_rng(0))
    made = SimulatedStream.of(PANES, event, event, 0)
    found = []
    for name, policy in TRIED.items():
        setup = SimulationSetup(made, PANES, COST, POLICIES[policy], Workers(NODES, 1), scheduling=None, sampling=1.0)
        busy: list[FloatArray] = []
        for sampled in simulate(setup):
            busy.append(np.array(sampled.plq.busy, float))
            if busy[-1].mean() > 0:
                long = _ratio(np.sum(busy[-SPAN:], axis=0)) if len(busy) >= SPAN else np.nan
                found.append({"time": sampled.time, "partitioning": name, "ratio": _ratio(busy[-1]), "long": long,
                              "sigma": sampled.sigma})  # fmt: skip
    return pd.DataFrame(found)


def _ratio(busy: FloatArray) -> float:
    return float(busy.std() / busy.mean())


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean and maximum of each partitioning's ratios, after the start."""
    later = rows[rows["time"] > min(WARM, rows["time"].max() / 2)].groupby("partitioning", sort=False)
    named = {
        f"{span} s {what}": (column, what)
        for span, column in ((1, "ratio"), (SPAN, "long"))
        for what in ("mean", "max")
    }
    table: pd.DataFrame = later.agg(**named).reset_index()
    return table


def _claim(name: str, least: float, most: float, because: str) -> Claim:
    def judge(rows: pd.DataFrame) -> Finding:
        found = only(summary(rows), partitioning=name)
        second, long = (float(found[column].iloc[0]) for column in ("1 s mean", f"{SPAN} s mean"))
        return Finding(f"{long:.1%} over {SPAN} s, {second:.1%} in a second, on average", least <= long <= most)

    told = f"below {most:.0%}" if least == 0 else f"about {(least + most) / 2:.0%} on average"
    return Claim(f"{name} pane partitioning has a load-balancing ratio {told}", judge, because)


FIGURE = Figure(
    title="load balance of pane partitioning when the rate jumps five-fold",
    regime=(
        "One splitter, 16 nodes, panes of half a second; 18K to 22K tuples in a second, five times as many in one of ten; every "
        "tuple costs the same, and all of them nine tenths of the nodes' time. The ratio is standard deviation over mean of "
        f"the nodes' busy time in 1 s, and in {SPAN} s, over which claims are judged: the paper does not say over how long."
    ),
    measure=measure,
    summary=summary,
    claims=(
        _claim(
            "rate-aware",
            0.0,
            0.07,
            "where the rate is calm no pane is split, and nodes without one have nothing to do (0.6); while what a jump has "
            "left is worked off, all are busy (0)",
        ),
        _claim(
            "plain", 0.5, 0.7, "a queue evens out what a node is busy with; the paper does not say how long a pane is"
        ),
    ),
    plots=(Plot("", "Figure 12: load-balancing ratio", "time", "ratio", "partitioning"),),
)
