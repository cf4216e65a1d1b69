"""Figures 12 and 13: window workers and their idle time, with and without MERGE tasks."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.fuzzy_policy import FuzzyPolicy
from skypane.control.parallelism import Workers
from skypane.control.splitting import PidSplitting
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.runtime.sim.simulation import SimulationSetup, simulate
from skypane.windows import Windows
from skypane_papers.elastic import MACHINE
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at, only
from skypane_papers.streams import stream
from skypane_papers.summary import mean

WINDOWS: Final = Windows.of("1 s", "200 ms")
COMPARISONS: Final = (40, 50, 65)
"""Nanoseconds of a comparison in the second stage, which the paper does not state; its table 4 gives 65."""
SAMPLING: Final = 0.25


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each cost of a comparison and scheduler."""
    seconds, settled = (5, 2) if quick else (100, 30)
    made = stream(30_000, 1_000, WINDOWS, seconds)
    return pd.DataFrame(
        [
            {"ns": ns, "scheduling": scheduling} | _run(made, scheduling, ns, settled)
            for ns in COMPARISONS
            for scheduling in ("WIN_FB", "WIN_FB_MERGE")
        ]
    )


def _run(made: SimulatedStream, scheduling: str, ns: int, settled: float) -> dict[str, float]:
    elastic = Elastic(FuzzyPolicy(), max_workers=60, start=Workers(2, 1))
    cost = MACHINE.comparing(ns * 1e-9)
    setup = SimulationSetup(made, WINDOWS, cost, PidSplitting(), elastic.start, scheduling, elastic, SAMPLING)
    shown = [sampled for sampled in simulate(setup) if sampled.time > settled]
    merges, updates = (sum(getattr(sampled, kind) for sampled in shown) for kind in ("merges", "updates"))
    return {
        "sigma": mean(shown, "sigma"),
        "m": float(np.mean([sampled.workers.wlq for sampled in shown])),
        "rho": mean(shown, "rho_wlq"),
        "idle": mean(shown, "idle_wlq"),
        "idle workers": float(np.mean([sampled.idle_wlq * sampled.workers.wlq for sampled in shown])),
        "merges": merges / (merges + updates),
        "windows/s": sum(sampled.windows for sampled in shown) / (len(shown) * SAMPLING),
    }


def _both(rows: pd.DataFrame, figure: str, ns: int) -> tuple[float, float]:
    """Return a figure without and with MERGE."""
    return at(rows, figure, ns=ns, scheduling="WIN_FB"), at(rows, figure, ns=ns, scheduling="WIN_FB_MERGE")


def _setpoint(rows: pd.DataFrame) -> Finding:
    rho = rows["rho"].to_numpy(float)
    return Finding(f"rho from {rho.min():.2f} to {rho.max():.2f}", bool((np.abs(rho - 0.9) < 0.12).all()))


def _fewer(rows: pd.DataFrame) -> Finding:
    pairs = [_both(rows, "m", ns) for ns in COMPARISONS]
    return Finding("; ".join(f"{a:.1f} and {b:.1f}" for a, b in pairs), all(b < a for a, b in pairs))


def _idle(rows: pd.DataFrame) -> Finding:
    cuts = [1 - b / a for a, b in (_both(rows, "idle workers", ns) for ns in COMPARISONS)]
    share = [1 - b / a for a, b in (_both(rows, "idle", ns) for ns in COMPARISONS)]
    ours = f"{', '.join(f'{cut:.0%}' for cut in cuts)} of the time; as a share of all workers' time {share[1]:.0%}"
    return Finding(ours, 0.35 < cuts[1] < 0.55)


def _third(rows: pd.DataFrame) -> Finding:
    merges = only(rows, scheduling="WIN_FB_MERGE")["merges"].to_numpy(float)
    return Finding(", ".join(f"{share:.0%}" for share in merges), 0.27 < merges[1] < 0.47)


FIGURE = Figure(
    title="window workers with and without MERGE: number, utilisation, idle time",
    regime=(
        "30K tuples/s at I = 1K, windows of 1 s each 0.2 s, both stages by the fuzzy controller, on paper 5's machine: a "
        "tuple costs what its figure 11 implies; a comparison in the second stage, which the paper does not state, takes 40, 50 or 65 ns; the middle one is judged."
    ),
    measure=measure,
    claims=(
        Claim("12: both keep the utilisation near its setpoint", _setpoint),
        Claim("12: with MERGE fewer workers are used", _fewer),
        Claim(
            "13: with MERGE workers are idle for 45 % less time",
            _idle,
            "the controller takes idle workers away in both cases",
        ),
        Claim(
            "MERGE tasks are 37 % of all tasks",
            _third,
            "there is something to merge where panes have several partitions and a window's updates do not keep up",
        ),
    ),
    plots=(
        Plot("-workers", "Figure 12: window workers", "ns", "m", by="scheduling", bars=True),
        Plot("-idle", "Figure 13: idle workers", "ns", "idle workers", by="scheduling", bars=True),
    ),
)
