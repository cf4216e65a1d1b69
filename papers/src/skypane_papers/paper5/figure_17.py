"""Figure 17: the lengths of the control interval and of the PID's sampling period."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from skypane_papers.elastic import GAME1, SETPOINT, Run, sampled, summary
from skypane_papers.figure import Claim, Figure, Finding, Plot

CONTROL = (2.5, 5.0, 10.0)
SAMPLES = (5, 10, 20, 40)


def measure(quick: bool, traces: Path | None = None) -> pd.DataFrame:
    """Return a row for each pair of intervals."""
    found = []
    for control in CONTROL[:2] if quick else CONTROL:
        for samples in (5, 10) if quick else SAMPLES:
            shown = sampled(GAME1, replace(Run(), sampling=control / samples, every=samples), quick, traces)
            rho = np.array([one.rho_plq for one in shown[len(shown) // 3 : -1]])
            error = 100 * abs(float(np.nanmean(rho)) / SETPOINT - 1)
            found.append({"T_control": control, "samples": samples, "error %": error, "CV": summary(shown).cv})
    return pd.DataFrame(found)


def _accurate(rows: pd.DataFrame) -> Finding:
    means = rows.groupby("samples")["error %"].mean()
    told = ", ".join(f"{samples}: {error:.1f} %" for samples, error in means.items())
    return Finding(told, bool(means.iloc[-1] < means.iloc[0]))


def _unstable(rows: pd.DataFrame) -> Finding:
    means = rows.groupby("T_control")["CV"].mean()
    told = ", ".join(f"{control:g} s: {cv:.2f}" for control, cv in means.items())
    return Finding(told, bool(means.is_monotonic_increasing))


FIGURE = Figure(
    title="lengths of T_control and T_pid",
    regime="Game1 as in figures 14 and 15, with control intervals of 2.5 to 10 s, of 5 to 40 sampling periods each.",
    measure=measure,
    traced=measure,
    claims=(
        Claim("the more sampling periods in a control interval, the closer rho is to its setpoint", _accurate),
        Claim("longer control intervals make throughput less stable", _unstable),
    ),
    plots=(
        Plot("error", "Figure 17: error of rho", "samples", "error %", "T_control"),
        Plot("cv", "Figure 17: CV of windows per second", "samples", "CV", "T_control"),
    ),
)
