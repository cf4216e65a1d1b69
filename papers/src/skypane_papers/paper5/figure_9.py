"""Figure 9: the PLQ under a rate that changes every 30 seconds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from skypane.control.parallelism import Workers
from skypane.runtime.sim.simulation import SimulationSample
from skypane.types import FloatArray
from skypane.workloads import Steps
from skypane_papers.elastic import SETPOINT, Run, made
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.plq_alone import ENDS_IDLE, PANES, PlqAlone
from skypane_papers.rows import only

RATES = (40_000.0, 50_000.0, 70_000.0, 80_000.0, 60_000.0, 40_000.0)
STEP = 30


START = Workers(3, 1)
THERE = (3, 4, 6, 6)
SLOW, ACCEPTABLE, OURS = "slow", "acceptable", "acceptable, idle ones go"
RUNS = {
    SLOW: Run(PlqAlone(rho_wlq=1.5), start=START, scheduling=None, idle_timeout=0),
    ACCEPTABLE: Run(PlqAlone(), start=START, scheduling=None, idle_timeout=0),
    OURS: Run(PlqAlone(), start=START, scheduling=None),
}
"""By what the window level is taken for. At 80K tuples/s its windows would need some 300 workers of this machine's."""


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each second and run."""
    step = 2 if quick else STEP
    stream = made(Steps(RATES, f"{step} seconds"), PANES, len(RATES) * step)
    return pd.concat(
        [_seconds(name, run.over(stream, PANES)[:-1], step) for name, run in RUNS.items()], ignore_index=True
    )


def _seconds(name: str, shown: list[SimulationSample], step: int) -> pd.DataFrame:
    seconds = [shown[at : at + 4] for at in range(0, len(shown) - 3, 4)]
    return pd.DataFrame({
        "window level": name,
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
    length = max(1, int((rows[rows["window level"] == SLOW]["step"] == 0).sum()))
    settled = rows[rows["second"] % length >= length / 3]
    by = settled.groupby(["window level", "step"], as_index=False, sort=False)
    return by[["tuples/s", "n", "sigma", "rho", "panes/s"]].mean()


def _workers(rows: pd.DataFrame, level: str) -> tuple[FloatArray, str]:
    n = only(steps(rows), **{"window level": level})["n"].to_numpy(float)
    return n, f"n {', '.join(f'{value:.1f}' for value in n)}"


def _follows(level: str, rows: pd.DataFrame) -> Finding:
    n, told = _workers(rows, level)
    return Finding(told, bool((np.diff(n[:3]) > 0).all() and (np.diff(n[3:]) < 0).all()))


def _as_there(rows: pd.DataFrame) -> Finding:
    slow = only(rows, **{"window level": SLOW})
    n = slow.groupby("step")["n"].last().to_numpy(float)[:4]
    return Finding(
        f"{', '.join(f'{value:.0f}' for value in n)} at the ends of these steps",
        bool((np.abs(n - THERE[: len(n)]) <= 1).all()),
    )


def _falls(rows: pd.DataFrame) -> Finding:
    n, told = _workers(rows, SLOW)
    return Finding(told, bool((np.diff(n[3:]) < 0).all()))


def _runs_away(rows: pd.DataFrame) -> Finding:
    n, told = _workers(rows, ACCEPTABLE)
    return Finding(f"{told}, most of them without work", bool(n.max() < 12))


def _keeps(rows: pd.DataFrame) -> Finding:
    rho = only(steps(rows), **{"window level": SLOW})["rho"].to_numpy(float)
    return Finding(f"rho {', '.join(f'{value:.2f}' for value in rho)}", bool((np.abs(rho - SETPOINT) < 0.1).all()))


FIGURE = Figure(
    title="steps of the rate: the pane level alone, both levels of adaptation",
    regime=(
        "40K, 50K, 70K, 80K, 60K, 40K tuples/s, panes of 0.1 s; T_pid 0.25 s, T_control 2.5 s, three workers at first. Costs "
        "fitted at figure 11. Means of the last two thirds of each step. The paper's own steps, 3, 4, 5, 6, are those of the "
        "factor 1.25, rule 12, and six workers stay although panes are split by six, rule 9: its window level was slow."
    ),
    measure=measure,
    summary=steps,
    claims=(
        Claim("3 workers at 40K tuples/s, 4 at 50K, 6 at 70K and at 80K (here: within one)", _as_there),
        Claim("where the rate falls they are taken away", _falls),
        Claim("utilisation comes back to 0.9 after each step", _keeps, "few workers leave steps of a whole worker"),
        Claim("(ours) nor are there many where the window level is acceptable", _runs_away, ENDS_IDLE),
        Claim("(ours) and they follow the rate there, if those without work are taken away", partial(_follows, OURS)),
    ),
    plots=(
        Plot("rate", "Figure 9, above: arrivals", "second", "tuples/s", where={"window level": SLOW}),
        Plot("workers", "Figure 9, above: workers of the PLQ", "second", "n", "window level", log="y"),
        Plot("rho", "Figure 9, middle: utilisation", "second", "rho", where={"window level": SLOW}, level=SETPOINT),
        Plot(
            "panes",
            "Figure 9, below: panes closed per second",
            "second",
            "panes/s",
            where={"window level": SLOW},
            level=10,
        ),
    ),
)
