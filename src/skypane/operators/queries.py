"""The queries that answer windows, by name: what a job file, and whatever else picks a query by name, looks up."""

from __future__ import annotations

from typing import Final

from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK

QUERIES: Final[dict[str, type[Query]]] = {
    "skyline": Skyline,
    "top_k": TopK,
    "k_dominant": KDominant,
    "top_delta": TopDelta,
    "aggregate": Aggregate,
}
