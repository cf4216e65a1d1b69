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
PANES: Final = ("500 ms", "1 second")
"""Lengths of a pane: a jump of a second is two panes, which round robin gives to two nodes, or one."""
UTILISATIONS: Final = (0.2, 0.35, 0.5, 0.7, 0.9)
"""Shares of their time that tuples keep the nodes busy for. The paper prints neither these nor the length of a pane."""
TRIED: Final = {"plain": "PB_RR", "rate-aware": "AS"}
SPAN: Final = 16
"""Seconds in which each node has a pane in turn."""
WARM: Final = 40
"""Seconds until sizes of panes are known."""


def event_times(seconds: int, rng: np.random.Generator) -> IntArray:
    """Return ascending microseconds: 18K to 22K tuples in a second, and five times as many with probability 0.1."""
    counts = rng.integers(18_000, 22_001, seconds) * np.where(rng.random(seconds) < 0.1, 5, 1)
    return np.concatenate([at * 1_000_000 + np.sort(rng.integers(0, 1_000_000, n)) for at, n in enumerate(counts)])


def cost(utilisation: float) -> CostModel:
    """Return the cost of tuples that keep the nodes busy for this share of their time."""
    return replace(KERNELS, tuple_base=utilisation * NODES / (20_000 * 1.4))


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each setting, partitioning and second: the ratio in that second, and in the last `SPAN`."""
    event = event_times(20 if quick else 240, np.random.default_rng(seed))
    settings = [(pane, share) for pane in PANES for share in (UTILISATIONS[-1:] if quick else UTILISATIONS)]
    return pd.concat([_run(event, pane, share, name) for pane, share in settings for name in TRIED], ignore_index=True)


def _run(event: IntArray, pane: str, utilisation: float, partitioning: str) -> pd.DataFrame:
    panes = Windows.of(pane)
    made = SimulatedStream.of(panes, event, event, 0)
    splitting = POLICIES[TRIED[partitioning]]
    setup = SimulationSetup(made, panes, cost(utilisation), splitting, Workers(NODES, 1), scheduling=None, sampling=1.0)
    found, busy = [], list[FloatArray]()
    for sampled in simulate(setup):
        busy.append(np.array(sampled.plq.busy, float))
        if busy[-1].mean() > 0:
            long = _ratio(np.sum(busy[-SPAN:], axis=0)) if len(busy) >= SPAN else np.nan
            found.append({"time": sampled.time, "ratio": _ratio(busy[-1]), "long": long})
    return pd.DataFrame(found).assign(pane=pane, utilisation=utilisation, partitioning=partitioning)


def _ratio(busy: FloatArray) -> float:
    return float(busy.std() / busy.mean())


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean and maximum of the ratios of each setting and partitioning, after the start."""
    later = rows[rows["time"] > min(WARM, rows["time"].max() / 2)]
    named = {
        f"{span} s {what}": (column, what)
        for span, column in ((1, "ratio"), (SPAN, "long"))
        for what in ("mean", "max")
    }
    table: pd.DataFrame = later.groupby(["partitioning", "pane", "utilisation"], sort=False).agg(**named).reset_index()
    return table


def _claim(name: str, says: str, least: float, most: float) -> Claim:
    def judge(rows: pd.DataFrame) -> Finding:
        found = only(summary(rows), partitioning=name)
        told, holding = [], 0
        for column in (f"{SPAN} s mean", "1 s mean"):
            ratios = found[column]
            inside = int(ratios.between(least, most).sum())
            holding += inside
            told.append(f"{ratios.min():.1%} to {ratios.max():.1%} ({column}), so in {inside} of {len(found)} settings")
        return Finding("; ".join(told), holding == 2 * len(found))

    return Claim(says, judge)


def _better(rows: pd.DataFrame) -> Finding:
    told, holding = [], []
    for span in (SPAN, 1):
        table = summary(rows).pivot_table(f"{span} s mean", ["pane", "utilisation"], "partitioning")
        wins = int((table["rate-aware"] < table["plain"]).sum())
        told.append(f"lower in {wins} of {len(table)} settings over {span} s")
        holding += [span] if wins == len(table) else []
    given = (f"ratios over {holding[0]} s",) if len(holding) == 1 else ()
    return Finding(", ".join(told), bool(holding), given)


FIGURE = Figure(
    title="load balance of pane partitioning when the rate jumps five-fold",
    regime=(
        "One splitter, 16 nodes; 18K to 22K tuples in a second, five times as many in one of ten; every tuple costs the same. The "
        "paper prints neither how long a pane is, nor how busy the nodes are, nor over how long a ratio is taken: panes of "
        f"{' and '.join(PANES)}, nodes busy for {UTILISATIONS[0]:.0%} to {UTILISATIONS[-1]:.0%} of their time, and the ratio "
        f"(standard deviation over mean of the nodes' busy time) in 1 s and in {SPAN} s. A claim holds if it does in all settings."
    ),
    measure=measure,
    seeds=3,
    summary=summary,
    claims=(
        _claim("rate-aware", "rate-aware pane partitioning has a load-balancing ratio below 7 %", 0.0, 0.07),
        _claim("plain", "plain pane partitioning has a load-balancing ratio of about 60 % on average", 0.5, 0.7),
        Claim("rate-aware pane partitioning is balanced better than plain one", _better),
    ),
    plots=tuple(
        Plot(f"-{number}", f"Figure 12: load-balancing ratio, panes of {pane}", "time", "ratio", "partitioning",
             {"pane": pane, "utilisation": UTILISATIONS[-1]})
        for number, pane in enumerate(PANES, 1)
    ),
)  # fmt: skip
