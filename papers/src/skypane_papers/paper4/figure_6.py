"""Figure 6: the gain from an asynchronous reduce, for which the owner of a point does not wait."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane_papers.farms import WORKERS, bandwidth, costs, stream
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only

RATE: Final = 100_000
WINDOW: Final = 20.0
KIND: Final = "independent"
REDUCES: Final = ("synchronous", "asynchronous")
FITTED: Final = "reduce of 0.5 us"
SETTINGS: Final = {
    FITTED: (0.5e-6, 0.0),
    "reduce of 0.5 us, times that vary by 10 %": (0.5e-6, 0.1),
    "reduce of 1 us, times that vary by 10 %": (1e-6, 0.1),
    "reduce of 2 us": (2e-6, 0.0),
}
"""Seconds of a reduce, and the coefficient of variation of a worker's time for a point, by what they are called."""


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each setting, number of workers and kind of reduce."""
    some = stream(KIND, *((5_000, 1.0) if quick else (RATE, WINDOW)), seed=seed)
    rows = []
    for setting, (reduce, variation) in SETTINGS.items():
        spent = costs(KIND)._replace(reduce=reduce, variation=variation)
        alone = bandwidth(KIND, some, 1, spent=spent)
        for workers in (2, 6) if quick else (2, 4, 6, 8, 10, WORKERS):
            both = {
                kind: bandwidth(KIND, some, workers, asynchronous=kind == REDUCES[1], spent=spent) for kind in REDUCES
            }
            gain = both["asynchronous"] / both["synchronous"] - 1
            rows += [
                {"setting": setting, "workers": workers, "reduce": kind, "speedup": served / alone, "gain": gain}
                for kind, served in both.items()
            ]
    return pd.DataFrame(rows)


def _gains(rows: pd.DataFrame) -> dict[str, list[float]]:
    """Return the gains with four workers and more, by setting."""
    once = rows[(rows["workers"] >= 4) & (rows["reduce"] == "asynchronous")]
    return {str(setting): group["gain"].tolist() for setting, group in once.groupby("setting", sort=False)}


def _gain(rows: pd.DataFrame) -> Finding:
    gains = _gains(rows)
    told = "; ".join(f"{setting}: {min(gain):.0%} to {max(gain):.0%}" for setting, gain in gains.items())
    holding = [setting for setting, gain in gains.items() if 0.095 < np.mean(gain) < 0.205]
    given = () if FITTED in holding else tuple(f"a {name}" for name in holding)
    return Finding(f"{told}, with four workers and more", bool(holding), given)


def _grows(rows: pd.DataFrame) -> Finding:
    gains = only(rows, setting=FITTED).drop_duplicates("workers")["gain"].to_numpy(float)
    return Finding(f"{gains[0]:.1%} with the fewest, {gains[-1]:.1%} with the most", bool(gains[-1] > gains[0]))


def _ideal(rows: pd.DataFrame) -> Finding:
    fitted = only(rows, setting=FITTED)
    most = only(fitted, workers=fitted["workers"].max()).set_index("reduce")["speedup"]
    ours = ", ".join(f"{reduce} {most[reduce]:.1f}" for reduce in REDUCES)
    return Finding(f"{ours} on {rows['workers'].max()} workers", bool(most["asynchronous"] > most["synchronous"]))


FIGURE = Figure(
    title="asynchronous against synchronous reduce",
    regime=(
        "100K independent points/s, a window of 20 s, LLW+, in the costs of the paper's machine (a stored point 20 ns, "
        "a point 0.5 us), with a reduce from the last worker on of 0.5 us, of 1 us and of 2 us, and workers whose time for a "
        "point varies or not: the paper prints neither; speedup over one worker."
    ),
    measure=measure,
    seeds=3,
    claims=(
        Claim("it gains 10 to 20 %", _gain),
        Claim("the more, the more workers there are", _grows),
        Claim("the speedup is closer to the ideal one", _ideal),
    ),
    plots=(
        Plot("a", "Figure 6a: speedup", "workers", "speedup", "reduce", {"setting": FITTED}),
        Plot(
            "b", "Figure 6b: gain of the asynchronous reduce", "workers", "gain", "setting", {"reduce": "asynchronous"}
        ),
    ),
)
