"""Figure 17: the lengths of the control interval and of the PID's sampling period."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from skypane_papers.elastic import AS_PUBLISHED, GAME1, SETTINGS, as_published, sampled, summary
from skypane_papers.figure import Cause, Claim, Figure, Finding, Plot
from skypane_papers.paper5.table_4 import in_both
from skypane_papers.rows import only

CONTROL: Final = (2.5, 5.0, 10.0, 20.0)
PID: Final = 0.25
PERIODS: Final = (0.125, PID, 0.5)
"""Seconds; 0.25 is the paper's period in all other figures."""
SEEDS: Final = (0, 1)
PUBLISHED: Final = next(iter(SETTINGS))


def measure(quick: bool, traces: Path | None = None) -> pd.DataFrame:
    """Return a row for each pair of intervals and seed."""
    found = []
    for setting, control, period, seed in _runs(quick):
        samples = round(control / period)
        run = replace(as_published(SETTINGS[setting]), sampling=period, every=samples)
        shown = sampled(GAME1, run, quick, traces, seed)
        rho = np.array([one.rho_plq for one in shown[len(shown) // 3 : -1]])
        error = 100 * abs(float(np.nanmean(rho)) / SETTINGS[setting] - 1)
        found.append({
            "setting": setting, "T_control": control, "T_pid": period, "samples": samples, "seed": seed,
            "error %": error, "CV": summary(shown, settled=0.0).cv,
        })  # fmt: skip
    return pd.DataFrame(found)


def _runs(quick: bool) -> Iterator[tuple[str, float, float, int]]:
    """Yield setting, both intervals and seed: all periods with the published setpoint, and seeds where windows are judged."""
    for setting in SETTINGS:
        for control in CONTROL[:2] if quick else CONTROL:
            for period in PERIODS if setting == PUBLISHED else (PID,):
                several = setting == PUBLISHED and period == PID and not quick
                for seed in SEEDS if several else SEEDS[:1]:
                    yield setting, control, period, seed


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means of the seeds, and the least and the largest CV."""
    names = {"seeds": ("seed", "count"), "error %": ("error %", "mean"), "CV": ("CV", "mean")}
    names |= {"CV from": ("CV", "min"), "CV to": ("CV", "max")}
    keys = ["setting", "T_control", "T_pid", "samples"]
    found: pd.DataFrame = rows.groupby(keys, sort=False).agg(**names).reset_index()
    return found


def _accurate(rows: pd.DataFrame) -> Finding:
    means = rows.groupby("samples")["error %"].mean()
    told = ", ".join(f"{samples}: {error:.1f} %" for samples, error in means.items())
    return Finding(told, bool(means.iloc[-1] < means.iloc[0]))


def _unstable(rows: pd.DataFrame) -> Finding:
    means = only(table(rows), T_pid=PID).set_index("T_control")
    told = ", ".join(
        f"{control:g} s: {row['CV']:.2f} ({row['CV from']:.2f} to {row['CV to']:.2f})"
        for control, row in means.iterrows()
    )
    return Finding(told, bool(means["CV"].is_monotonic_increasing))


ENOUGH = Cause(
    "with 0.9 the error is below 1 % from ten periods on, so that more do not help; with 0.7 the rules remove workers until rho is "
    "0.9, which they call acceptable, and the PID splits as far as it can (sigma near n)",
    "paper5-figures-14-15",
)
FIGURE = Figure(
    title="lengths of T_control and T_pid",
    regime=(
        f"Game1 as in figures 14 and 15. {AS_PUBLISHED} Control intervals of 2.5 to 20 s; sampling periods of 0.125, 0.25 and 0.5 s with setpoint 0.7, 0.25 s with 0.9; "
        f"{len(SEEDS)} seeds with 0.7 and 0.25 s, with which the instability is judged. Windows are counted per second in the order in which the collector "
        "returns them, over the whole run."
    ),
    measure=measure,
    traced=measure,
    summary=table,
    claims=(
        Claim("the more sampling periods in a control interval, the closer rho is to its setpoint", in_both(_accurate), ENOUGH),
        Claim("longer control intervals make throughput less stable", in_both(_unstable)),
    ),
    plots=(
        Plot("error", "Figure 17: error of rho", "samples", "error %", "T_control", where={"setting": PUBLISHED, "seed": SEEDS[0]}),
        Plot("cv", "Figure 17: CV of windows per second", "T_control", "CV", "setting", where={"T_pid": PID, "seed": SEEDS[0]}),
    ),
)  # fmt: skip
