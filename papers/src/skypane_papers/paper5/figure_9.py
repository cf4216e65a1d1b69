"""Figure 9: the PLQ under a rate that changes every 30 seconds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from skypane.control.parallelism import Workers
from skypane.runtime.sim.simulation import SimulationSample
from skypane.types import FloatArray
from skypane.workloads import Steps
from skypane_papers.elastic import SETPOINT, N, Run, made
from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Plot
from skypane_papers.plq_alone import PANES, PLQ_ALONE, PlqAlone
from skypane_papers.rows import only

RATES = (40_000.0, 50_000.0, 70_000.0, 80_000.0, 60_000.0, 40_000.0)
STEP = 30
START = Workers(3, 1)
THERE = (3, 4, 6, 6)
PUBLISHED, MEASURED, OURS = "sigma fixed at 1", "sigma measured", "sigma measured, idle ones go"
RUNS = {
    PUBLISHED: Run(PLQ_ALONE, start=START, scheduling=None, idle_timeout=0, max_workers=N + 1),
    MEASURED: Run(PlqAlone(sigma=None), start=START, scheduling=None, idle_timeout=0, max_workers=N + 1),
    OURS: Run(PlqAlone(sigma=None), start=START, scheduling=None, max_workers=N + 1),
}
"""By what the controller gets for the splitting factor."""
SEEDS = (0, 1, 2)
SHOWN = {"controller": PUBLISHED, "seed": SEEDS[0]}


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each second and run."""
    step = 2 if quick else STEP
    return pd.concat(
        [
            _seconds(name, seed, run.over(stream, PANES)[:-1], step)
            for seed in (SEEDS[:1] if quick else SEEDS)
            for stream in [made(Steps(RATES, f"{step} seconds"), PANES, len(RATES) * step, seed=seed)]
            for name, run in RUNS.items()
        ],
        ignore_index=True,
    )


def _seconds(name: str, seed: int, shown: list[SimulationSample], step: int) -> pd.DataFrame:
    seconds = [shown[at : at + 4] for at in range(0, len(shown) - 3, 4)]
    return pd.DataFrame({
        "controller": name,
        "seed": seed,
        "second": range(len(seconds)),
        "step": [second // step for second in range(len(seconds))],
        "tuples/s": [float(sum(one.arrived for one in part)) for part in seconds],
        "n": [part[0].workers.plq for part in seconds],
        "sigma": [float(np.nanmean([one.sigma for one in part])) if any(one.plq.panes for one in part) else np.nan for part in seconds],
        "rho": [float(np.nanmean([one.rho_plq for one in part])) for part in seconds],
        "panes/s": [sum(one.plq.panes for one in part) for part in seconds],
    })  # fmt: skip


def steps(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means of each rate and all seeds, without the seconds in which workers follow."""
    length = max(1, int((only(rows, controller=PUBLISHED, seed=SEEDS[0])["step"] == 0).sum()))
    settled = rows[rows["second"] % length >= length / 3]
    names = {"tuples/s": ("tuples/s", "mean"), "n": ("n", "mean"), "n from": ("n", "min"), "n to": ("n", "max")}
    names |= {name: (name, "mean") for name in ("sigma", "rho", "panes/s")}
    table: pd.DataFrame = settled.groupby(["controller", "step"], sort=False).agg(**names).reset_index()
    return table


def _workers(rows: pd.DataFrame, controller: str) -> tuple[FloatArray, str]:
    n = only(steps(rows), controller=controller)["n"].to_numpy(float)
    return n, f"n {', '.join(f'{value:.1f}' for value in n)}"


def _follows(controller: str, rows: pd.DataFrame) -> Finding:
    n, told = _workers(rows, controller)
    return Finding(told, bool((np.diff(n[:3]) > 0).all() and (np.diff(n[3:]) < 0).all()))


def _as_there(rows: pd.DataFrame) -> Finding:
    found = only(rows, controller=PUBLISHED)
    last = found.pivot_table(index="seed", columns="step", values="n", aggfunc="last").to_numpy(float)[:, :4]
    told = "; ".join(", ".join(f"{value:.0f}" for value in n) for n in last)
    return Finding(
        f"{told} at the ends of these steps, by seed", bool((np.abs(last - THERE[: last.shape[1]]) <= 1).all())
    )


def _falls(rows: pd.DataFrame) -> Finding:
    n, told = _workers(rows, PUBLISHED)
    return Finding(told, bool((np.diff(n[3:]) < 0).all()))


def _runs_away(rows: pd.DataFrame) -> Finding:
    n, told = _workers(rows, MEASURED)
    return Finding(f"{told}, most of them without work", bool(n.max() < 12))


def _keeps(rows: pd.DataFrame) -> Finding:
    rho = only(steps(rows), controller=PUBLISHED)["rho"].to_numpy(float)
    return Finding(f"rho {', '.join(f'{value:.2f}' for value in rho)}", bool((np.abs(rho - SETPOINT) < 0.1).all()))


FIGURE = Figure(
    title="steps of the rate: the pane level alone, both levels of adaptation",
    regime=(
        "40K, 50K, 70K, 80K, 60K, 40K tuples/s, panes of 0.1 s; T_pid 0.25 s, T_control 2.5 s, three workers at first. Costs "
        "fitted at figure 11. Means of the last two thirds of each step, and of three seeds. The published code runs the PLQ alone: the controller "
        "gets a utilisation of the window level of 0.9 and a splitting factor of 1, whatever it is, so rules 7 and 8, which add workers where "
        "panes are split, never fire, and workers without work stay. Beside it: the measured splitting factor."
    ),
    measure=measure,
    summary=steps,
    claims=(
        Claim("3 workers at 40K tuples/s, 4 at 50K, 6 at 70K and at 80K (here: within one)", _as_there),
        Claim(
            "where the rate falls they are taken away",
            _falls,
            Cause(
                "the PID keeps rho at 0.9 by fewer partitions (sigma), so that the rules see no stage that is fast",
                TABLE,
            ),
        ),
        Claim("utilisation comes back to 0.9 after each step", _keeps),
        Claim(
            "(ours) nor are there many with the measured splitting factor, as the rules of the text have it",
            _runs_away,
            Cause("rules 7 and 8 add workers as long as panes are split; those without work do not lower rho", TABLE),
        ),
        Claim(
            "(ours) and they follow the rate there too, if those without work are taken away", partial(_follows, OURS)
        ),
    ),
    plots=(
        Plot("rate", "Figure 9, above: arrivals", "second", "tuples/s", where=SHOWN),
        Plot(
            "workers",
            "Figure 9, above: workers of the PLQ",
            "second",
            "n",
            "controller",
            where={"seed": SEEDS[0]},
            log="y",
        ),
        Plot("rho", "Figure 9, middle: utilisation", "second", "rho", where=SHOWN, level=SETPOINT),
        Plot(
            "panes",
            "Figure 9, below: panes closed per second",
            "second",
            "panes/s",
            where=SHOWN,
            level=10,
        ),
    ),
)
