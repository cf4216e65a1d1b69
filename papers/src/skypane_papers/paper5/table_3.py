"""Table 3: the properties of the streams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from skypane_papers.elastic import FULL, OVERLAPPING, QUICK, SOURCES
from skypane_papers.figure import Claim, Figure, Finding, Plot


def measure(quick: bool, traces: Path | None = None, seed: int = 0) -> pd.DataFrame:
    """Return a row for each stream."""
    found = []
    for source in SOURCES:
        arrival = source.stream(OVERLAPPING, QUICK if quick else FULL, traces, seed).arrival
        counts = np.bincount(arrival.astype(int))[:-1]
        found.append({
            "stream": source.name, "tuples/s": float(counts.mean()), "tuples/s paper": float(source.rate),
            "peak to mean": float(counts.max() / counts.mean()), "peak to mean paper": source.peak,
        })  # fmt: skip
    return pd.DataFrame(found)


def _rates(rows: pd.DataFrame) -> Finding:
    off = (rows["tuples/s"] / rows["tuples/s paper"] - 1).abs()
    return Finding(f"median {off.median():.1%} off, {off.max():.0%} at most", bool(off.max() < 0.15))


FIGURE = Figure(
    title="what the streams are like",
    regime="Generated streams, or the published rates with Poisson arrivals within a second; the first three minutes.",
    measure=measure,
    seeds=3,
    traced=measure,
    claims=(Claim("average rates of table 3", _rates),),
    plots=(Plot("", "Peak to mean", "stream", "peak to mean", bars=True),),
)
