"""Figure 10: elasticity alone compared with both levels, under bursts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skypane.control.splitting import PaneRoundRobin, PidSplitting, Splitting
from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.workloads import Map2, ParetoSlots
from skypane_papers.elastic import SETPOINT, Arrivals, N, Run, made
from skypane_papers.figure import Cause, Claim, Figure, Finding, Plot
from skypane_papers.plq_alone import PANES, PLQ_ALONE
from skypane_papers.rows import only

RATE = 80_000
TRAFFIC: dict[str, Arrivals] = {"MAP": Map2(RATE, 1_000), "Pareto": ParetoSlots(RATE, 0.6)}
LEVELS: dict[str, Splitting] = {"elasticity alone": PaneRoundRobin(), "both levels": PidSplitting()}
EVERY = 10
SEEDS = (0, 1, 2)


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each control interval."""
    return pd.DataFrame([
        {"traffic": traffic, "levels": levels, "seed": seed} | interval
        for traffic, arrivals in TRAFFIC.items()
        for levels, splitting in LEVELS.items()
        for seed in (SEEDS[:1] if quick else SEEDS)
        for interval in _intervals(made(arrivals, PANES, 1 if quick else 75, seed=seed), _run(splitting))
    ])  # fmt: skip


def _run(splitting: Splitting) -> Run:
    return Run(PLQ_ALONE, splitting, scheduling=None, idle_timeout=0, max_workers=N + 1)


def _intervals(stream: SimulatedStream, run: Run) -> list[dict[str, float]]:
    shown = run.over(stream, PANES)[:-1]
    parts = [shown[at : at + EVERY] for at in range(0, len(shown), EVERY)]
    return [
        {
            "seconds": part[-1].time,
            "n": part[0].workers.plq,
            "sigma": float(np.nanmean([one.sigma for one in part] or [np.nan])),
            "rho": float(np.nanmean([one.rho_plq for one in part])),
        }
        for part in parts
        if any(one.plq.panes for one in part)
    ]


def settled(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means of each run after 25 seconds: of all seeds, and the least and the largest."""
    late = rows[rows["seconds"] > min(25.0, float(rows["seconds"].max()) / 2)]
    runs = late.groupby(["traffic", "levels", "seed"], as_index=False, sort=False)[["n", "sigma", "rho"]].mean()
    of = {"": "mean", " from": "min", " to": "max"}
    named = {f"{name}{end}": (name, how) for name in ("n", "sigma", "rho") for end, how in of.items()}
    table: pd.DataFrame = runs.groupby(["traffic", "levels"], sort=False).agg(**named).reset_index()
    return table


def _alone(rows: pd.DataFrame) -> Finding:
    found = only(settled(rows), levels="elasticity alone")
    ours = "; ".join(f"{row.traffic}: n {row.n:.0f}, rho {row.rho:.1f}" for row in found.itertuples())
    return Finding(ours, bool((found["rho"] > 1.5).all() and (found["n"] > 50).all()))


def _both(rows: pd.DataFrame) -> Finding:
    found = only(settled(rows), levels="both levels")
    ours = "; ".join(
        f"{row.traffic}: n {row.n:.1f}, sigma {row.sigma:.1f}, rho {row.rho:.2f}" for row in found.itertuples()
    )
    return Finding(ours, bool((abs(found["rho"] - SETPOINT) < 0.1).all() and (found["n"] < 15).all()))


STAY = Cause(
    "workers that the backlog of the start has brought stay: the PID keeps rho at 0.9 by fewer partitions, so that the rules see no stage that is fast",
    "paper5-figure-9",
)
FIGURE = Figure(
    title="elasticity alone, and both levels: MAP and Pareto traffic",
    regime="80K tuples/s, MAP with I = 1K and Pareto with H = 0.6, panes of 0.1 s, delays of 0.2 s on average; N = 60; means after 25 s, of three seeds. The PLQ alone, as in the published code: the controller gets a utilisation of the window level of 0.9 and a splitting factor of 1, whatever they are, and workers without work stay. The published logs of these runs have a setpoint of 0.9, as the text.",
    measure=measure,
    summary=settled,
    claims=(
        Claim("10a: without splitting the PLQ takes all workers it may have, and stays a bottleneck (rho about 3 with MAP)", _alone),
        Claim("10b: with both levels rho stays close to 0.9, with few workers (here: fewer than 15)", _both, STAY),
    ),
    plots=tuple(
        Plot(f"{what}-{traffic.lower()}", f"Figure 10, {traffic}: {name}", "seconds", what, "levels", {"traffic": traffic, "seed": SEEDS[0]},
             SETPOINT if what == "rho" else None, log="y")
        for traffic in TRAFFIC
        for what, name in (("rho", "utilisation"), ("n", "workers"))
    ),
)  # fmt: skip
