"""Figure 14: shared panes compared with separate windows."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from skypane.kernels.batch_skyline import skyline_indices
from skypane.types import FloatArray
from skypane.workloads.content.points import DISTRIBUTIONS
from skypane_papers.clock import cpu_seconds
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.grain import nested_loops
from skypane_papers.rows import only

PANE: Final = 2_000
PANES_PER_WINDOW: Final = (1, 2, 4, 8, 12)
WINDOWS: Final = 4
"""Windows that are answered, a pane apart."""
DIMENSIONS: Final = 6


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each number of panes per window, and algorithm."""
    pane, times = (100, 1) if quick else (PANE, 2)
    rng, rows = np.random.default_rng(4 + seed), []
    for panes in PANES_PER_WINDOW:
        drawn = [DISTRIBUTIONS["independent"](pane, DIMENSIONS, rng) for _ in range(panes + WINDOWS - 1)]
        points = [np.ascontiguousarray(one) for one in drawn]
        for algorithm, skyline in (("nested loops", nested_loops), ("kernels", skyline_indices)):
            # Windows start a pane apart, so each adds one pane to lift.
            lift = cpu_seconds(lambda: [one[skyline(one)] for one in points[:WINDOWS]], times)  # noqa: B023
            partials = [one[skyline(one)] for one in points]
            merge = cpu_seconds(lambda: _answers(partials, panes, skyline), times)  # noqa: B023
            whole = cpu_seconds(lambda: _answers(points, panes, skyline), times)  # noqa: B023
            rows.append(
                {"panes": panes, "algorithm": algorithm, "with panes": lift + merge, "without": whole}
                | {"ratio": (lift + merge) / whole}
            )
    return pd.DataFrame(rows)


def _answers(parts: list[FloatArray], panes: int, skyline: object) -> None:
    for window in range(WINDOWS):
        skyline(np.concatenate(parts[window : window + panes]))  # type: ignore[operator]


def _ratios(rows: pd.DataFrame, algorithm: str) -> list[float]:
    return [float(ratio) for ratio in only(rows, algorithm=algorithm).sort_values("panes")["ratio"]]


def _less(rows: pd.DataFrame) -> Finding:
    ratios = _ratios(rows, "nested loops")[1:]
    return Finding(f"ratios {', '.join(f'{ratio:.2f}' for ratio in ratios)}", max(ratios) < 1)


def _more_overlap(rows: pd.DataFrame) -> Finding:
    ratios = _ratios(rows, "nested loops")[1:]
    return Finding(f"from {ratios[0]:.2f} to {ratios[-1]:.2f}", ratios[-1] < ratios[0])


def _kernels(rows: pd.DataFrame) -> Finding:
    ratios = _ratios(rows, "kernels")[1:]
    return Finding(f"ratios {', '.join(f'{ratio:.2f}' for ratio in ratios)}", max(ratios) < 1)


FIGURE = Figure(
    title="panes against whole windows",
    regime=(
        f"Panes of {PANE:,} independent points, d = {DIMENSIONS}, windows a pane apart, on one core: CPU seconds for "
        f"{WINDOWS} windows with panes over those without."
    ),
    measure=measure,
    seeds=3,
    timing=True,
    claims=(
        Claim("panes reduce the execution time", _less),
        Claim("the more panes a window has, the more they save", _more_overlap),
        Claim("(not the paper's) so they do with our kernels", _kernels),
    ),
    plots=(Plot("", "Figure 14: time with panes over time without", "panes", "ratio", by="algorithm", level=1.0),),
)
