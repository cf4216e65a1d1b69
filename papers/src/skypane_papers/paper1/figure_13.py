"""Figure 13: the imbalance of window workers, with windows bound to workers and with feedback."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane.control.parallelism import Workers
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.paper1.figure_12 import RATE, SCHEDULERS, WINDOWS, run
from skypane_papers.rows import at
from skypane_papers.streams import stream

CASES: Final = {2_500: 3, 6_000: 4}
"""Index of dispersion -> workers of the first stage."""
WORKERS: Final = (2, 3, 4, 5, 6, 8, 10)


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each burst level, scheduler and number of window workers."""
    seconds, settled, most = (8, 2, (2, 5, 10)) if quick else (80, 30, WORKERS)
    rows = []
    for dispersion, plq in CASES.items():
        made = stream(RATE, dispersion, WINDOWS, seconds, seed=seed)
        rows += [
            {"I": dispersion, "scheduler": scheduler, "m": m} | run(made, scheduler, Workers(plq, m), settled)
            for scheduler in SCHEDULERS
            for m in most
        ]
    return pd.DataFrame(rows)


def _rises(rows: pd.DataFrame) -> Finding:
    found = [[at(rows, "unbalance", I=i, scheduler="WIN_RR", m=m) for m in (5, 10)] for i in CASES]
    ours = "; ".join(f"{few:.2f} on 5, {many:.2f} on 10 workers" for few, many in found)
    return Finding(ours, all(few < many for few, many in found))


def _lower(rows: pd.DataFrame) -> Finding:
    many = rows[rows["m"] > 5].pivot_table(index=["I", "m"], columns="scheduler", values="unbalance")
    ours = ", ".join(f"{cell.WIN_FB:.2f} instead of {cell.WIN_RR:.2f}" for cell in many.itertuples())
    return Finding(ours, bool((many["WIN_FB"] < many["WIN_RR"]).all()))


FIGURE = Figure(
    title="unbalance of window workers: WIN_RR against WIN_FB",
    regime="As figure 12; busy time of the most loaded worker over that of the least loaded.",
    measure=measure,
    seeds=3,
    claims=(
        Claim("with more than five workers the unbalance of WIN_RR increases", _rises),
        Claim("that of WIN_FB remains significantly lower", _lower),
    ),
    plots=tuple(
        Plot(f"-{i}", f"Figure 13: unbalance at I = {i:,}", "m", "unbalance", by="scheduler", where={"I": i})
        for i in CASES
    ),
)
