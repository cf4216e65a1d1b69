"""Figure 14: the largest rate with which twelve workers keep up, by the number of criteria."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane_papers.farms import DRAWS, WORKERS, sustained
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only

WINDOW: Final = 3.0
DIMENSIONS: Final = (4, 6, 8, 10, 12, 14, 16)


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each distribution and number of criteria."""
    window, counts = (0.02, (4, 8)) if quick else (WINDOW, DIMENSIONS)
    return pd.DataFrame([
        {"points": kind, "d": d, "rate": sustained(kind, window, WORKERS, d, seed=seed)} for kind in DRAWS for d in counts
    ])  # fmt: skip


def _rates(rows: pd.DataFrame, kind: str) -> list[float]:
    return [float(rate) for rate in only(rows, points=kind).sort_values("d")["rate"]]


def _falls(rows: pd.DataFrame) -> Finding:
    found = {kind: _rates(rows, kind) for kind in DRAWS}
    told = "; ".join(f"{kind} {', '.join(f'{rate / 1000:.0f}K' for rate in rates)}" for kind, rates in found.items())
    # Where no point is pruned any more, differences are noise of a few per cent.
    return Finding(told, all(bool((np.diff(rates) < 0.05 * np.array(rates[:-1])).all()) for rates in found.values()))


def _order(rows: pd.DataFrame) -> Finding:
    first = {kind: _rates(rows, kind)[0] for kind in DRAWS}
    told = ", ".join(f"{kind} {rate:,.0f}" for kind, rate in first.items())
    return Finding(told, first["correlated"] > first["independent"] > first["anticorrelated"])


FIGURE = Figure(
    title="maximum sustainable rate by criteria",
    regime="A window of 3 s (the paper's: 30 s), 12 workers, LLW+, in the costs of the paper's machine, the same for any number of criteria.",
    measure=measure,
    seeds=2,
    claims=(
        Claim("with more criteria fewer points are pruned, and the rate falls, for all distributions", _falls),
        Claim("correlated points allow the highest rate, anticorrelated ones the lowest", _order),
    ),
    plots=(Plot("", "Figure 14: sustainable points/s", "d", "rate", by="points", log="y"),),
)
