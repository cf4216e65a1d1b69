"""Tables 4 and 5 and figure 16: every stream of table 3 on both levels, with the values of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pandas as pd

from skypane.runtime.sim.cost_models import KERNELS
from skypane_papers.elastic import MACHINE, SOURCES, N, Run, Summary, sampled, summary

Query = Literal["skyline", "top_delta"]
DEMAND = {"skyline": 1.0, "top_delta": 1.25}
"""Comparisons of a query relative to the skyline. The factor of top-delta is the ratio of the paper's n and m of MAP-DS
with I = 1K, table 5 over table 4; the other rows are predictions."""


def run(query: Query) -> Run:
    """Return the run of a query with the paper's costs."""
    factor = DEMAND[query]
    return Run(
        cost=replace(
            MACHINE, tuple_compare=factor * MACHINE.tuple_compare, merge_compare=factor * MACHINE.merge_compare
        )
    )


def rows(query: Query, *, quick: bool, traces: Path | None = None) -> pd.DataFrame:
    """Return one row per stream: our values, the paper's, and the workers needed with the costs of our kernels."""
    found = []
    for source in SOURCES[1:10:4] if quick else SOURCES:
        ours = summary(sampled(source, run(query), quick, traces))
        kernels = summary(sampled(source, Run(cost=KERNELS), quick, traces))
        found.append({"stream": source.name, **_beside(ours, getattr(source, query)), **_ours(kernels)})
    return pd.DataFrame(found)


def _beside(ours: Summary, paper: Sequence[float]) -> dict[str, float]:
    names = ("n", "m", "sigma", "extra %", "CV")
    mine = (ours.n, ours.m, ours.sigma, ours.extra, ours.cv)
    columns = {name: value for pair in zip(names, mine, paper, strict=True)
               for name, value in ((pair[0], pair[1]), (f"{pair[0]} paper", pair[2]))}  # fmt: skip
    return columns | {"of N %": 100 * ours.cores / N}


def _ours(kernels: Summary) -> dict[str, float]:
    return {"workers, our costs": kernels.cores, "of them busy": kernels.busy}
