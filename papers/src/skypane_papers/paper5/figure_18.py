"""Figure 18: other programs on the same machine, as a slowdown of all work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from skypane.runtime.sim.cost_models import CostModel
from skypane_papers.elastic import GAME1, MACHINE, Run, sampled, summary
from skypane_papers.figure import Claim, Figure, Finding, Plot

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Foreign threads by virtual cores. A core has four: at level 1 a worker shares its core with as many as there are."""


def slowed(level: float) -> CostModel:
    """Return the costs of a worker whose core is shared: half of it is left at level 1."""
    parts = ("tuple_base", "tuple_compare", "merge_base", "merge_row", "merge_compare")
    return replace(MACHINE, **{part: getattr(MACHINE, part) * (1 + level) for part in parts})


def measure(quick: bool, traces: Path | None = None) -> pd.DataFrame:
    """Return a row for each level."""
    found = []
    for level in LEVELS[::4] if quick else LEVELS:
        means = summary(sampled(GAME1, Run(cost=slowed(level)), quick, traces))
        found.append(
            {"level": level, "n": means.n, "m": means.m, "workers": means.cores, "extra %": means.extra, "CV": means.cv}
        )
    return pd.DataFrame(found)


def _more(rows: pd.DataFrame) -> Finding:
    told = ", ".join(f"{value:.0f}" for value in rows["workers"])
    return Finding(told, bool(rows["workers"].is_monotonic_increasing))


def _throughput(rows: pd.DataFrame) -> Finding:
    low = rows[rows["level"] <= 0.75]
    return Finding(
        f"extra time at most {low['extra %'].max():.1f} % up to level 0.75", bool(low["extra %"].max() < 3.1)
    )


FIGURE = Figure(
    title="external load",
    regime="Game1 as in figures 14 and 15; foreign threads are modelled as a slowdown, to half the speed where each virtual core has one.",
    measure=measure,
    traced=measure,
    claims=(
        Claim("the more foreign load, the more workers", _more),
        Claim("throughput does not suffer but at very high levels", _throughput),
    ),
    plots=(Plot("", "Figure 18: workers of both stages", "level", "workers"), Plot("cv", "Figure 18: CV of windows per second", "level", "CV")),
)  # fmt: skip
