"""Figure 7: the time per tuple, by the distribution of the points."""

from __future__ import annotations

from typing import Final

import pandas as pd

from skypane.workloads.content.points import Kind
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.grain import grain
from skypane_papers.rows import at

KINDS: Final[tuple[Kind, ...]] = ("correlated", "independent", "anticorrelated")
DIMENSIONS: Final = (4, 8, 12)
PANE: Final = 10_000


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return microseconds a tuple for each distribution and number of dimensions."""
    size, times = (1_000, 1) if quick else (PANE, 3)
    return pd.DataFrame(
        [{"points": kind, "d": d} | grain(kind, size, d, seed, times)._asdict() for d in DIMENSIONS for kind in KINDS]
    )


def _share(rows: pd.DataFrame) -> Finding:
    shares = [at(rows, "share", points=kind, d=12) for kind in ("anticorrelated", "correlated")]
    near = abs(shares[0] / 0.74 - 1) < 0.1 and abs(shares[1] / 0.03 - 1) < 0.5
    return Finding(f"{shares[0]:.0%} and {shares[1]:.1%}", near)


def _order(rows: pd.DataFrame) -> Finding:
    times = [at(rows, "nested_loops", points=kind, d=8) for kind in KINDS]
    return Finding(" < ".join(f"{time:.2f} us" for time in times), times == sorted(times))


FIGURE = Figure(
    title="time per tuple by distribution",
    regime=f"As figure 6, panes of {PANE:,} points.",
    measure=measure,
    seeds=3,
    timing=True,
    claims=(
        Claim("correlated points take the least time, anticorrelated the most", _order),
        Claim(
            "at d = 12 the skyline holds 74 % of anticorrelated, 3 % of correlated points",
            _share,
        ),
    ),
    plots=(
        Plot("", "Figure 7: skyline, block nested loops (us per tuple)", "d", "nested_loops", by="points", log="y"),
    ),
)
