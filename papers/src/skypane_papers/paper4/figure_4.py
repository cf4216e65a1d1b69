"""Figure 4: the number of stored points, by the number of points received in a window."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane_papers.farms import DRAWS, D, stored
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.rows import only

RECEIVED: Final = (100_000, 200_000, 500_000, 1_000_000, 2_000_000, 4_000_000)


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each distribution and size of the window."""
    sizes = (1_000, 4_000) if quick else RECEIVED
    rows = [{"points": kind, "received": n, "stored": stored(kind, n, seed=seed)} for kind in DRAWS for n in sizes]
    return pd.DataFrame(rows).assign(pruned=lambda found: 1 - found["stored"] / found["received"])


def _order(rows: pd.DataFrame) -> Finding:
    most = only(rows, received=rows["received"].max()).set_index("points")["stored"]
    ours = ", ".join(f"{kind} {most[kind]:,}" for kind in ("correlated", "independent", "anticorrelated"))
    return Finding(ours, bool(most["correlated"] < most["independent"] < most["anticorrelated"]))


def _thousands(rows: pd.DataFrame) -> Finding:
    millions = rows[rows["received"] >= 1_000_000]
    most = int(millions["stored"].max()) if len(millions) else 0
    return Finding(f"{most:,} at most", 0 < most < 50_000)


def _high(rows: pd.DataFrame) -> Finding:
    least = float(rows["pruned"].min())
    highest = str(rows.sort_values("pruned")["points"].iloc[-1])
    return Finding(f"{least:.3f} at least, highest with {highest} points", least > 0.9 and highest == "correlated")


def _slowly(rows: pd.DataFrame) -> Finding:
    powers = []
    for _, group in rows.groupby("points", sort=False):
        powers.append(float(np.polyfit(np.log(group["received"]), np.log(group["stored"]), 1)[0]))
    return Finding(
        f"stored grows as received to the power {', '.join(f'{power:.2f}' for power in powers)}", max(powers) < 0.5
    )


FIGURE = Figure(
    title="points stored, by points received in a window",
    regime=f"{D} criteria, windows by count, our front in its exact batch form; the points of table II.",
    measure=measure,
    seeds=3,
    claims=(
        Claim("the correlated points are fewest, the anticorrelated ones most", _order),
        Claim("of millions of points received, thousands are stored", _thousands),
        Claim("the pruning probability is high, highest with correlated points", _high),
        Claim("(not the paper's) the pruning probability is not constant: it grows with the window", _slowly),
    ),
    plots=(Plot("", "Figure 4: points stored", "received", "stored", by="points", log="xy"),),
)
