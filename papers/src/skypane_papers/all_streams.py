"""Tables 4 and 5 and figure 16: every stream of table 3 on both levels, with the values of the paper and of its logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd

from skypane.runtime.sim.cost_models import KERNELS, CostModel
from skypane_papers.elastic import BOTH, GAME1, SETTINGS, SOURCES, N, Run, Source, Summary, as_published, means

Query = Literal["skyline", "top_delta"]
DEMAND: Final = {"skyline": 1.0, "top_delta": 1.25}
"""Comparisons of a query relative to the skyline. The factor of top-delta is the ratio of the paper's n and m of MAP-DS
with I = 1K, table 5 over table 4; the other rows are predictions."""
SEEDS: Final[dict[Query, tuple[int, ...]]] = {"skyline": (0, 1), "top_delta": (0, 1)}
PUBLISHED: Final = "setpoint 0.7"
SAMPLED: Final = "setpoint 0.7, sampled"
"""The published setting, but with the utilisation as skypane measures it: the mean of samples of 0.25 s."""
OURS: Final = "our kernels"
LOGGED: Final[dict[Query, tuple[tuple[float, float, float], ...]]] = {
    "skyline": (
        (1.77, 12.6, 1.60), (4.28, 41.0, 1.82), (4.16, 38.8, 1.85), (4.30, 37.2, 1.90), (6.01, 36.8, 1.85),
        (3.05, 31.5, 0.92), (3.47, 34.7, 1.17), (3.50, 30.9, 2.30),
        (2.15, 18.5, 0.86), (2.30, 25.3, 1.75), (1.98, 21.0, 0.78), (2.48, 28.9, 1.12),
    ),
    "top_delta": (
        (1.81, 17.0, 1.42), (4.43, 44.5, 4.65), (4.66, 49.3, 3.24), (4.65, 48.3, 3.39), (4.95, 48.1, 6.62),
        (3.71, 48.6, 1.97), (3.83, 49.2, 2.04), (4.01, 44.9, 2.97),
        (2.31, 27.7, 0.97), (2.61, 36.5, 1.93), (2.19, 31.7, 0.94), (2.93, 44.2, 1.97),
    ),
}  # fmt: skip
"""n, m and the CV of windows per second in the published logs of the runs with setpoint 0.7, in the order of SOURCES."""


def cost(query: Query) -> CostModel:
    """Return the costs of the paper's machine for a query."""
    factor = DEMAND[query]
    return replace(BOTH, tuple_compare=factor * BOTH.tuple_compare, merge_compare=factor * BOTH.merge_compare)


def rows(query: Query, *, quick: bool, traces: Path | None = None) -> pd.DataFrame:
    """Return a row for each stream and setting: our values, their spread over seeds, the paper's, and those of its logs."""
    known = dict(zip(SOURCES, LOGGED[query], strict=True))
    return pd.DataFrame(
        [
            _row(source, setting, _runs(source, run, quick, traces, seeds), query, known[source])
            for source in (SOURCES[1:10:4] if quick else SOURCES)
            for setting, run, seeds in _settings(query, source)
        ]
    )


def _settings(query: Query, source: Source) -> Iterator[tuple[str, Run, tuple[int, ...]]]:
    for name, setpoint in SETTINGS.items():
        yield name, as_published(setpoint, cost(query)), SEEDS[query]
    if query == "skyline" and source in (SOURCES[1], GAME1):
        yield (
            SAMPLED,
            replace(as_published(SETTINGS[PUBLISHED], cost(query)), wlq_utilisation="sampled"),
            SEEDS[query][:1],
        )
    if query == "skyline":
        yield OURS, Run(cost=KERNELS), SEEDS[query][:1]


def _runs(source: Source, run: Run, quick: bool, traces: Path | None, seeds: tuple[int, ...]) -> list[Summary]:
    return [means(source, run, quick, traces, seed) for seed in (seeds[:1] if quick else seeds)]


def _row(
    source: Source, setting: str, found: list[Summary], query: Query, logged: tuple[float, float, float]
) -> dict[str, object]:
    n, m, sigma, extra, cv = getattr(source, query)
    row: dict[str, object] = {"stream": source.name, "setting": setting}
    for name, of_summary, paper, log in (
        ("n", "n", n, logged[0]), ("m", "m", m, logged[1]), ("sigma", "sigma", sigma, None),
        ("extra %", "extra", extra, None), ("CV", "cv", cv, logged[2]),
    ):  # fmt: skip
        values = np.array([getattr(one, of_summary) for one in found], float)
        row |= {name: float(values.mean()), f"{name} from": float(values.min()), f"{name} to": float(values.max())}
        row |= {f"{name} paper": paper} | ({} if log is None else {f"{name} logs": log})
    cores = float(np.mean([one.cores for one in found]))
    return row | {"of N %": 100 * cores / N, "workers": cores, "busy": float(np.mean([one.busy for one in found]))}
