"""Figure 6: the time per tuple, by dimensions and pane size."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.grain import grain
from skypane_papers.rows import at, only

SIZES: Final = (2_000, 5_000, 10_000)
DIMENSIONS: Final = (2, 4, 6, 8, 10, 12)


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return microseconds a tuple for each size of a pane and number of dimensions."""
    sizes, times = ((500, 1_000, 2_000), 1) if quick else (SIZES, 3)
    return pd.DataFrame(
        [
            {"pane": size, "d": d} | grain("independent", size, d, seed, times)._asdict()
            for size in sizes
            for d in DIMENSIONS
        ]
    )


def _grows(rows: pd.DataFrame) -> Finding:
    """Ten thousand tuples against two: five times the time a tuple is proportional, the same is not."""
    least, most = int(rows["pane"].min()), int(rows["pane"].max())
    ratio = [at(rows, "nested_loops", pane=most, d=d) / at(rows, "nested_loops", pane=least, d=d) for d in (8, 12)]
    ours = (
        f"{most / least:.0f} times the tuples: {ratio[0]:.1f} times the time a tuple at d = 8, {ratio[1]:.1f} at d = 12"
    )
    return Finding(ours, min(ratio) > 0.7 * most / least)


def _dimensions(rows: pd.DataFrame) -> Finding:
    times = only(rows, pane=rows["pane"].max()).sort_values("d")["nested_loops"].to_numpy(float)
    return Finding(f"{', '.join(f'{time:.1f}' for time in times)} us", bool((np.diff(times) > 0).all()))


def _top_delta(rows: pd.DataFrame) -> Finding:
    large = rows[(rows["pane"] == rows["pane"].max()) & (rows["d"] >= 8)]
    ratio = (large["nested_loops_top"] / large["nested_loops"]).to_numpy(float)
    return Finding(f"{ratio.min():.2f} to {ratio.max():.2f} times", bool(ratio.min() >= 1.5 and ratio.max() <= 2))


def _kernels(rows: pd.DataFrame) -> Finding:
    ratio = at(rows, "nested_loops", pane=rows["pane"].max(), d=8) / at(rows, "kernel", pane=rows["pane"].max(), d=8)
    return Finding(f"{ratio:.0f} times less time at d = 8", ratio > 1)


FIGURE = Figure(
    title="time per tuple by dimensions",
    regime="A pane of independent points on one core, CPU microseconds a tuple: block nested loops, and our kernels.",
    measure=measure,
    seeds=3,
    timing=True,
    claims=(
        Claim(
            "the time is proportional to the tuples of a pane",
            _grows,
        ),
        Claim("it grows with the dimensions", _dimensions),
        Claim(
            "top-delta dominant takes 1.5 to 2 times the skyline's time",
            _top_delta,
        ),
        Claim("(not the paper's) a better algorithm than block nested loops can be used", _kernels),
    ),
    plots=(
        Plot("", "Figure 6: skyline, block nested loops (us per tuple)", "d", "nested_loops", by="pane"),
        Plot("-kernel", "The same, our kernels (us per tuple)", "d", "kernel", by="pane"),
    ),
)
