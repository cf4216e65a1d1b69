"""Figure 18: other programs on the same machine, as a slowdown of all work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from skypane.runtime.sim.cost_models import CostModel
from skypane_papers.elastic import AS_PUBLISHED, BOTH, GAME1, SETTINGS, as_published, means
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.paper5.table_4 import in_both

LEVELS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Foreign threads by virtual cores. A core has four: at level 1 a worker shares its core with as many as there are."""
SEEDS: Final = (0, 1)


def slowed(level: float) -> CostModel:
    """Return the costs of a worker whose core is shared: half of it is left at level 1."""
    parts = ("tuple_base", "tuple_compare", "merge_base", "merge_row", "merge_compare")
    return replace(BOTH, **{part: getattr(BOTH, part) * (1 + level) for part in parts})


def measure(quick: bool, traces: Path | None = None) -> pd.DataFrame:
    """Return a row for each setting and level: means of the seeds, and the least and the largest CV."""
    found = []
    for setting, setpoint in SETTINGS.items():
        for level in LEVELS[::4] if quick else LEVELS:
            run = as_published(setpoint, slowed(level))
            of_seeds = [means(GAME1, run, quick, traces, seed) for seed in (SEEDS[:1] if quick else SEEDS)]
            n, m, extra, cv = (
                np.array([getattr(one, name) for one in of_seeds], float) for name in ("n", "m", "extra", "cv")
            )
            found.append({
                "setting": setting, "level": level, "n": n.mean(), "m": m.mean(), "workers": (n + m).mean(),
                "workers from": (n + m).min(), "workers to": (n + m).max(), "extra %": extra.mean(), "CV": cv.mean(),
                "CV from": cv.min(), "CV to": cv.max(),
            })  # fmt: skip
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
    regime=(
        "Game1 as in figures 14 and 15; foreign threads are modelled as a slowdown, to half the speed where each virtual core has one. "
        f"{AS_PUBLISHED} Means of the whole run and of {len(SEEDS)} seeds."
    ),
    measure=measure,
    traced=measure,
    claims=(
        Claim("the more foreign load, the more workers", in_both(_more)),
        Claim("throughput does not suffer but at very high levels", in_both(_throughput)),
    ),
    plots=(
        Plot("", "Figure 18: workers of both stages", "level", "workers", "setting"),
        Plot("cv", "Figure 18: CV of windows per second", "level", "CV", "setting"),
    ),
)
