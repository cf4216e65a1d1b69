"""Figure 9: the PLQ under a rate that changes every 30 seconds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skypane.reproduce.elastic import SETPOINT, Run, made
from skypane.reproduce.figure import Claim, Figure, Finding, Plot
from skypane.reproduce.plq_alone import IDLE, PANES, PLQ_ALONE
from skypane.reproduce.rows import only
from skypane.workloads import Steps

RATES = (40_000.0, 50_000.0, 70_000.0, 80_000.0, 60_000.0, 40_000.0)
STEP = 30


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each second."""
    step = 2 if quick else STEP
    stream = made(Steps(RATES, f"{step} seconds"), PANES, len(RATES) * step)
    shown = Run(policy=PLQ_ALONE, scheduling=None).over(stream, PANES)[:-1]
    seconds = [shown[at : at + 4] for at in range(0, len(shown) - 3, 4)]
    return pd.DataFrame({
        "second": range(len(seconds)),
        "step": [second // step for second in range(len(seconds))],
        "tuples/s": [float(sum(one.arrived for one in part)) for part in seconds],
        "n": [part[0].workers.plq for part in seconds],
        "sigma": [float(np.nanmean([one.sigma for one in part])) if any(one.plq.panes for one in part) else np.nan for part in seconds],
        "rho": [float(np.nanmean([one.rho_plq for one in part])) for part in seconds],
        "panes/s": [sum(one.plq.panes for one in part) for part in seconds],
    })  # fmt: skip


def steps(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means of each rate, without the seconds in which workers follow."""
    length = int((rows["step"] == 0).sum())
    settled = rows[rows["second"] % max(length, 1) >= length / 3]
    return settled.groupby("step", as_index=False)[["tuples/s", "n", "sigma", "rho", "panes/s"]].mean()


def _grows(rows: pd.DataFrame) -> Finding:
    n = steps(rows)["n"].to_numpy(float)
    told = ", ".join(f"{value:.1f}" for value in n)
    return Finding(f"n {told}", bool((np.diff(n[:3]) > 0).all() and (np.diff(n[3:]) < 0).all()))


def _first(rows: pd.DataFrame) -> Finding:
    first = steps(rows).iloc[0]
    return Finding(f"n {first['n']:.1f}, sigma {first['sigma']:.1f}", bool(2.5 <= first["n"] <= 3.5))


def _keeps(rows: pd.DataFrame) -> Finding:
    rho = steps(rows)["rho"].to_numpy(float)
    return Finding(f"rho {', '.join(f'{value:.2f}' for value in rho)}", bool((np.abs(rho - SETPOINT) < 0.1).all()))


def _peak(rows: pd.DataFrame) -> Finding:
    found = only(steps(rows), step=2)["n"]
    n = float(found.iloc[0]) if len(found) else float("nan")
    return Finding(f"n {n:.1f}", 5 <= n <= 7)


FIGURE = Figure(
    title="steps of the rate: the pane level alone, both levels of adaptation",
    regime=(
        "40K, 50K, 70K, 80K, 60K, 40K tuples/s, panes of 0.1 s; T_pid 0.25 s, T_control 2.5 s; the window level counts as "
        "acceptable. Costs fitted at figure 11. Means of the last two thirds of each step."
    ),
    measure=measure,
    summary=steps,
    claims=(
        Claim("the first 30 s have 3 workers", _first, IDLE),
        Claim("at 70K tuples/s it ends with 6 workers", _peak, IDLE),
        Claim("workers are added where the rate grows, and taken away where it falls", _grows, IDLE),
        Claim("utilisation comes back to 0.9 after each step", _keeps, "few workers leave steps of a whole worker"),
    ),
    plots=(
        Plot("rate", "Figure 9, above: arrivals", "second", "tuples/s"),
        Plot("workers", "Figure 9, above: workers of the PLQ", "second", "n"),
        Plot("rho", "Figure 9, middle: utilisation", "second", "rho", level=SETPOINT),
        Plot("panes", "Figure 9, below: panes closed per second", "second", "panes/s", level=10),
    ),
)
