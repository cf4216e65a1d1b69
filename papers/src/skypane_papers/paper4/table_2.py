"""Table II: stored points and pruning probability of the streams on which the strategies are compared."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane_papers.farms import stored
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import at

STREAMS: Final = {
    "anticorrelated": (80_000, 10, 13_968, 0.9825),
    "independent": (100_000, 10, 4_296, 0.9957),
    "correlated": (250_000, 60, 1_308, 0.9999),
}
"""Points a second, seconds, stored, pruning probability."""


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each stream: ours beside the paper's."""
    rows = []
    for kind, (rate, window, told, pruned) in STREAMS.items():
        received = rate * window // (1_000 if quick else 1)
        ours = stored(kind, received)
        rows.append({
            "points": kind, "received": received, "stored": ours, "stored paper": told,
            "pruned": 1 - ours / received, "pruned paper": pruned,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _near(kind: str) -> Claim:
    told = STREAMS[kind][2]

    def judge(rows: pd.DataFrame) -> Finding:
        ours = at(rows, "stored", points=kind)
        return Finding(
            f"{ours:,.0f}, pruning probability {at(rows, 'pruned', points=kind):.4f}", abs(ours / told - 1) < 0.1
        )

    return Claim(f"{kind}: {told:,} stored, pruning probability {STREAMS[kind][3]}", judge, _BECAUSE.get(kind, ""))


_BECAUSE: Final = {
    "independent": (
        "points with independent continuous criteria leave nothing to choose: how many are undominated by later ones follows from "
        "their number and that of the criteria alone; fewer need values that repeat, or a window that is not full"
    ),
}

FIGURE = Figure(
    title="points stored and pruning probability of the streams compared",
    regime=(
        "5 criteria, windows by count. The deviation of the anticorrelated and the correlated generator is fitted to this table; "
        "with those of the skyline operator's paper it is 61,485 and 295."
    ),
    measure=measure,
    claims=tuple(_near(kind) for kind in STREAMS),
    plots=(Plot("", "Table II: points stored", "points", "stored", bars=True, log="y"),),
)
