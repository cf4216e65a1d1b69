"""Figure 6: the gain from an asynchronous reduce, for which the owner of a point does not wait."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skypane_papers.farms import WORKERS, bandwidth, stream
from skypane_papers.figure import Claim, Figure, Finding, Plot

RATE = 100_000
WINDOW = 20.0
KIND = "independent"


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each number of workers and kind of reduce."""
    some = stream(KIND, *((5_000, 1.0) if quick else (RATE, WINDOW)))
    alone = bandwidth(KIND, some, 1)
    rows = []
    for workers in (2, 6) if quick else range(1, WORKERS + 1):
        both = {reduce: bandwidth(KIND, some, workers, asynchronous=reduce == "asynchronous") for reduce in REDUCES}
        gain = both["asynchronous"] / both["synchronous"] - 1
        rows += [
            {"workers": workers, "reduce": reduce, "speedup": served / alone, "gain": gain}
            for reduce, served in both.items()
        ]
    return pd.DataFrame(rows)


REDUCES = ("synchronous", "asynchronous")


def _gain(rows: pd.DataFrame) -> Finding:
    gains = rows[rows["workers"] >= 4]["gain"].to_numpy(float)
    return Finding(f"{gains.min():.1%} to {gains.max():.1%} with four workers and more", 0.05 < np.median(gains) < 0.25)


def _grows(rows: pd.DataFrame) -> Finding:
    gains = rows.drop_duplicates("workers")["gain"].to_numpy(float)
    return Finding(f"{gains[0]:.1%} with the fewest, {gains[-1]:.1%} with the most", bool(gains[-1] > gains[0]))


def _ideal(rows: pd.DataFrame) -> Finding:
    most = rows[rows["workers"] == rows["workers"].max()].set_index("reduce")["speedup"]
    ours = ", ".join(f"{reduce} {most[reduce]:.1f}" for reduce in REDUCES)
    return Finding(f"{ours} on {rows['workers'].max()} workers", bool(most["asynchronous"] > most["synchronous"]))


FIGURE = Figure(
    title="asynchronous against synchronous reduce",
    regime=(
        "100K independent points/s, a window of 20 s, LLW+, in the costs of the paper's machine (a stored point 20 ns, "
        "a point 0.5 us, a reduce 0.5 us from the last worker on); speedup over one worker."
    ),
    measure=measure,
    claims=(
        Claim(
            "it gains 10 to 20 %",
            _gain,
            "a worker takes the same time for every stored point here, so that only uneven parts and the reduce itself are waited for",
        ),
        Claim("the more, the more workers there are", _grows),
        Claim("the speedup is closer to the ideal one", _ideal),
    ),
    plots=(
        Plot("a", "Figure 6a: speedup", "workers", "speedup", by="reduce"),
        Plot("b", "Figure 6b: gain of the asynchronous reduce", "workers", "gain"),
    ),
)
