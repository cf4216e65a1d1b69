"""Figure 11: even splitting compared with AS_PID, by the number of workers."""

from __future__ import annotations

import pandas as pd

from skypane.control.parallelism import Workers
from skypane.control.splitting import PidSplitting, Splitting, TupleRoundRobin
from skypane.workloads import Map2
from skypane_papers.elastic import SETPOINT, Run, made, summary
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.plq_alone import PANES
from skypane_papers.rows import at, only
from skypane_papers.summary import mean

POLICIES: dict[str, Splitting] = {"even": TupleRoundRobin(), "PID": PidSplitting()}


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each number of workers and policy."""
    stream = made(Map2(80_000, 1_000), PANES, 1 if quick else 60, seed=seed)
    found = []
    for n in (1, 12) if quick else range(1, 13):
        for name, policy in POLICIES.items():
            shown = Run(None, policy, start=Workers(n, 1), scheduling=None).over(stream, PANES)
            means = summary(shown)
            selected = mean(shown[len(shown) // 3 : -1], "share")
            found.append({"splitting": name, "n": n, "rho": means.rho_plq, "sigma": means.sigma, "selected": selected})
    return pd.DataFrame(found)


def _filtering(rows: pd.DataFrame) -> Finding:
    one, twelve = (at(rows, "selected", splitting="even", n=n) for n in (1, 12))
    return Finding(f"{one:.0%} and {twelve:.0%}", 0.2 < one < 0.34 and 0.5 < twelve < 0.66)


def _less(rows: pd.DataFrame) -> Finding:
    rho = only(rows, splitting="even").sort_values("n")["rho"].to_numpy(float)
    return Finding(f"from {rho[0]:.1f} to {rho[-1]:.2f}", bool((rho[1:] < rho[:-1]).all()))


def _enough(rows: pd.DataFrame) -> Finding:
    pid = only(rows, splitting="PID")
    enough = pid.loc[pid["rho"] < 1, "n"]
    n = int(enough.min()) if len(enough) else 0
    return Finding(f"{n} workers", 6 <= n <= 8)


def _eight(rows: pd.DataFrame) -> Finding:
    sigma = at(rows, "sigma", splitting="PID", n=8)
    pid, even = (at(rows, "selected", splitting=name, n=8) for name in ("PID", "even"))
    return Finding(f"sigma {sigma:.2f}, {pid:.0%} instead of {even:.0%}", 4.5 < sigma < 6 and pid < even)


FIGURE = Figure(
    title="even splitting and AS_PID by the number of workers",
    regime="80K tuples/s, MAP with I = 1K, panes of 0.1 s; the PLQ alone with a fixed number of workers. The cost of a comparison is fitted here, at n = 8.",
    measure=measure,
    seeds=3,
    claims=(
        Claim("more workers that share each pane lower rho", _less),
        Claim("27 % of the tuples are selected without splitting, 58 % with sigma 12", _filtering),
        Claim("with the PID 7 workers remove the bottleneck", _enough),
        Claim("8 workers split into 5.18, and select 43 % instead of 54 %", _eight),
    ),
    plots=(
        Plot("rho", "Figure 11: utilisation", "n", "rho", "splitting", level=SETPOINT, log="y"),
        Plot("selected", "Figure 11: share of tuples that the second stage gets", "n", "selected", "splitting"),
        Plot("sigma", "Figure 11: splitting factor", "n", "sigma", "splitting"),
    ),
)  # fmt: skip
