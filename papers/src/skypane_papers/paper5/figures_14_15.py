"""Figures 14 and 15: Game1 in detail, and its throughput compared with that of the best fixed numbers of workers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from skypane.control.parallelism import Workers
from skypane_papers.elastic import GAME1, Run, sampled, summary
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only

EVERY = 10


def measure(quick: bool, traces: Path | None = None) -> pd.DataFrame:
    """Return a row for each control interval, elastic and fixed."""
    elastic = sampled(GAME1, Run(), quick, traces)
    fixed = Workers(
        *(max(getattr(one.workers, stage) for one in elastic[len(elastic) // 4 :]) for stage in ("plq", "wlq"))
    )
    runs = {"elastic": elastic, "fixed": sampled(GAME1, Run(policy=None, start=fixed), quick, traces)}
    return pd.concat([_intervals(name, shown) for name, shown in runs.items()], ignore_index=True)


def _intervals(name: str, shown: list) -> pd.DataFrame:  # type: ignore[type-arg]
    parts = [shown[:-1][at : at + EVERY] for at in range(0, len(shown) - EVERY, EVERY)]
    means = summary(shown)
    return pd.DataFrame({
        "workers": name,
        "seconds": [part[-1].time for part in parts],
        "tuples/s": [sum(one.arrived for one in part) / (EVERY * 0.25) for part in parts],
        "n": [part[0].workers.plq for part in parts],
        "m": [part[0].workers.wlq for part in parts],
        "sigma": [float(np.nanmean([one.sigma for one in part] or [np.nan])) for part in parts],
        "windows/s": [sum(one.windows for one in part) / (EVERY * 0.25) for part in parts],
        "rho PLQ": means.rho_plq, "rho WLQ": means.rho_wlq, "CV": means.cv,
    })  # fmt: skip


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means of both runs."""
    late = rows[rows["seconds"] > min(25.0, float(rows["seconds"].max()) / 3)]
    return late.groupby("workers", as_index=False, sort=False).mean(numeric_only=True).drop(columns="seconds")


def _utilised(rows: pd.DataFrame) -> Finding:
    found = only(table(rows), workers="elastic").iloc[0]
    plq, wlq = float(found["rho PLQ"]), float(found["rho WLQ"])
    return Finding(f"{plq:.3f} and {wlq:.3f}", abs(plq - 0.9) < 0.1 and abs(wlq - 0.9) < 0.1)


def _throughput(rows: pd.DataFrame) -> Finding:
    elastic, fixed = (float(only(table(rows), workers=name)["windows/s"].iloc[0]) for name in ("elastic", "fixed"))
    return Finding(f"{elastic:.2f} and {fixed:.2f} windows/s", abs(elastic / fixed - 1) < 0.01)


def _stable(rows: pd.DataFrame) -> Finding:
    elastic, fixed = (float(only(rows, workers=name)["CV"].iloc[0]) for name in ("elastic", "fixed"))
    return Finding(f"{elastic:.2f} and {fixed:.2f}", fixed < elastic < 1)


def _follows(rows: pd.DataFrame) -> Finding:
    late = only(rows, workers="elastic").iloc[10:]
    found = float(np.corrcoef(late["tuples/s"][:-1], late["m"][1:])[0, 1]) if len(late) > 3 else float("nan")
    return Finding(f"correlation of rate and m {found:.2f}", found > 0.3)


FIGURE = Figure(
    title="Game1 in detail; throughput elastic and with fixed numbers",
    regime=(
        "Windows of 1 s every 0.2 s, skyline query, the paper's costs; without the published trace a random walk of Game1's "
        "mean and peak replaces it. The fixed numbers are the largest that the elastic run came to."
    ),
    measure=measure,
    traced=measure,
    summary=table,
    claims=(
        Claim("14: the average utilisation of both stages is 0.882 and 0.912", _utilised),
        Claim("14: workers keep up with the rate", _follows),
        Claim(
            "15: throughput differs by less than 1 % from that of fixed numbers, close to five windows/s", _throughput
        ),
        Claim("15: it is less stable, with a CV of 0.86 against 0.66", _stable),
    ),
    plots=(
        Plot("rate", "Figure 14: arrivals", "seconds", "tuples/s", where={"workers": "elastic"}),
        Plot("n", "Figure 14: workers of the PLQ", "seconds", "n", where={"workers": "elastic"}),
        Plot("m", "Figure 14: workers of the WLQ", "seconds", "m", where={"workers": "elastic"}),
        Plot("windows", "Figure 15: windows per second", "seconds", "windows/s", "workers", level=5),
    ),
)
