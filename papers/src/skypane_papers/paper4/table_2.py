"""Table II: stored points and pruning probability of the streams on which the strategies are compared."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane.types import FloatArray
from skypane_papers.farms import D, stored
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at

STREAMS: Final = {
    "anticorrelated": (80_000, 10, 13_968, 0.9825),
    "independent": (100_000, 10, 4_296, 0.9957),
    "correlated": (250_000, 60, 1_308, 0.9999),
}
"""Points a second, seconds, stored, pruning probability."""


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each stream: ours beside the paper's."""
    rows = []
    for kind, (rate, window, told, pruned) in STREAMS.items():
        received = rate * window // (1_000 if quick else 1)
        ours = stored(kind, received, seed=seed)
        rows.append({
            "points": kind, "received": received, "stored": ours, "stored paper": told,
            "pruned": 1 - ours / received, "pruned paper": pruned,
        })  # fmt: skip
    return pd.DataFrame(rows)


def expected(received: int, d: int = D) -> FloatArray:
    """Return the expected number of stored points for 1 to `received` points with `d` independent continuous criteria.

    A point is stored if no later one dominates it: it is on the skyline of d criteria and the time. The expectation does
    not depend on the distributions: E(n, 1) = 1, E(n, k) = sum over i <= n of E(i, k - 1) / i.
    """
    sizes = np.ones(received)
    for _ in range(d):
        sizes = np.cumsum(sizes / np.arange(1, received + 1))
    return sizes


def _near(kind: str) -> Claim:
    rate, window, told, pruned = STREAMS[kind]

    def judge(rows: pd.DataFrame) -> Finding:
        ours, received = (int(at(rows, column, points=kind)) for column in ("stored", "received"))
        found = f"{ours:,}, pruning probability {at(rows, 'pruned', points=kind):.4f}"
        if kind == "independent":
            sizes = expected(received)
            enough = int(np.searchsorted(sizes, told)) + 1
            found += f"; expected {sizes[-1]:,.0f}, and {told:,} for {enough:,} points"
        return Finding(found, abs(ours / told - 1) < 0.1)

    contradiction = f"its window holds {rate * window:,} points" if kind == "independent" else ""
    return Claim(f"{kind}: {told:,} stored, pruning probability {pruned}", judge, contradiction=contradiction)


FIGURE = Figure(
    title="points stored and pruning probability of the streams compared",
    regime=(
        "5 criteria, windows by count. The deviation of the anticorrelated and the correlated generator is fitted to this table; "
        "with those of the skyline operator's paper it is 61,485 and 295. How many independent points are expected follows from "
        "their number and that of the criteria alone."
    ),
    measure=measure,
    seeds=3,
    claims=tuple(_near(kind) for kind in STREAMS),
    plots=(Plot("", "Table II: points stored", "points", "stored", bars=True, log="y"),),
)
