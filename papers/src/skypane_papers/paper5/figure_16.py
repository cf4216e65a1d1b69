"""Figure 16: core-seconds, in place of power, as a share of all cores."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from skypane_papers import all_streams
from skypane_papers.elastic import AS_PUBLISHED
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.paper5.table_4 import in_both


def measure(quick: bool, traces: Path | None = None) -> pd.DataFrame:
    """Return a row for each stream."""
    return all_streams.rows("skyline", quick=quick, traces=traces)[["stream", "setting", "n", "m", "of N %"]]


def _saves(rows: pd.DataFrame) -> Finding:
    real = rows[rows["stream"].str.startswith("Game")]["of N %"].mean()
    other = rows[~rows["stream"].str.startswith(("Game", "RW"))]["of N %"].mean()
    return Finding(f"{real:.0f} % for games, {other:.0f} % for bursty streams", bool(real < other < 100))


FIGURE = Figure(
    title="core-seconds of the elastic runs, as a share of all 60 cores",
    regime=f"The runs of table 4. A core that has a worker counts, busy or not; the paper measured watts. {AS_PUBLISHED}",
    measure=measure,
    traced=measure,
    claims=(Claim("less than all cores everywhere, and least in the real streams", in_both(_saves)),),
    plots=(Plot("", "Figure 16: core-seconds, % of all cores", "stream", "of N %", by="setting", bars=True),),
)
