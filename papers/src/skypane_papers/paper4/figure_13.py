"""Figure 13: the largest rate with which a farm keeps up, by workers, found by bisection."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane_papers.farms import DRAWS, sustained
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at, only

WINDOWS: Final = (3.0, 6.0)
COUNTS: Final = (1, 2, 4, 8, 12)


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each distribution, window and number of workers."""
    windows, counts = ((0.02, 0.04), (1, 4)) if quick else (WINDOWS, COUNTS)
    return pd.DataFrame([
        {"points": kind, "window": window, "workers": n, "rate": sustained(kind, window, n, seed=seed)}
        for kind in DRAWS for window in windows for n in counts
    ])  # fmt: skip


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each distribution and window, a column for each number of workers."""
    table = rows.pivot_table(index=["points", "window"], columns="workers", values="rate", sort=False)
    return table.rename(columns="n = {}".format).reset_index()


def _windows(rows: pd.DataFrame) -> tuple[float, float]:
    return float(rows["window"].min()), float(rows["window"].max())


def _root(rows: pd.DataFrame) -> Finding:
    powers = {
        str(kind): float(np.polyfit(np.log(group["workers"]), np.log(group["rate"]), 1)[0])
        for kind, group in only(rows, window=rows["window"].max()).groupby("points", sort=False)
    }
    told = ", ".join(f"{kind} n^{power:.2f}" for kind, power in powers.items())
    return Finding(told, all(0.4 < power < 0.6 for power in powers.values()))


def _longer(rows: pd.DataFrame) -> Finding:
    short, long = _windows(rows)
    n = rows["workers"].max()
    ratios = [
        at(rows, "rate", points=kind, window=long, workers=n) / at(rows, "rate", points=kind, window=short, workers=n)
        for kind in DRAWS
    ]
    told = ", ".join(f"{1 - ratio:.0%}" for ratio in ratios)
    return Finding(f"{told} lower", all(0.75 < ratio < 0.85 for ratio in ratios))


def _highest(rows: pd.DataFrame) -> Finding:
    most = rows[rows["workers"] == rows["workers"].max()]
    found = {kind: float(only(most, points=kind)["rate"].max()) for kind in DRAWS}
    told = ", ".join(f"{kind} {rate:,.0f}/s" for kind, rate in found.items())
    return Finding(told, max(found, key=found.__getitem__) == "correlated")


FIGURE = Figure(
    title="maximum sustainable rate by workers",
    regime=(
        "Windows of 3 and 6 s (the paper's are ten times as long, and its points ten times as many), LLW+, queues of 100 places, in "
        "the costs of the paper's machine; a rate is kept up with if no more than five points in a row find a full queue."
    ),
    measure=measure,
    seeds=2,
    summary=summary,
    claims=(
        Claim(
            "the rate grows as the root of the workers",
            _root,
            contradiction=(
                "with points stored as the number of points to the power a, the rate grows as n^(1/(1 + a)) and falls by the window "
                "to the power a/(1 + a): the root is a = 1, for which a window twice as long costs 29 %, not the 20 % of the text, "
                "which is n^0.68"
            ),
        ),
        Claim("in a window twice as long it is about 20 % lower", _longer),
        Claim("it is highest with correlated points", _highest),
    ),
    plots=tuple(
        Plot(letter, f"Figure 13: sustainable points/s, {kind}", "workers", "rate", "window", {"points": kind})
        for letter, kind in zip("abc", DRAWS, strict=True)
    ),
)  # fmt: skip
