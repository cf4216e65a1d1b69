"""Runs as benchmarks leave them, of given figures."""

from __future__ import annotations

from collections.abc import Sequence

from measure.results.record import Comparison, Result, Run, Table, Times

MACHINE = {"processor": "Some CPU", "cores": "2 cores", "memory": "8 GiB", "system": "Linux 6"}
VERSIONS = {"skypane": "0.2.0", "pyspark": "4.3.0", "python": "3.11.2"}
TABLE = Table("page.md", "figures", ["way", "rows/s"], [["one", "1,000"]])
COMPARISON = Comparison(
    "merge of inputs",
    "20 inputs",
    {"columnar merge": 1_000_000, "heapq.merge": 250_000, "PriorityQueue": 1_000_000},
    "columnar merge",
    {
        "columnar merge": [Times(0.5, 0.5), Times(0.25, 0.5), Times(0.4, 0.25)],
        "heapq.merge": [Times(0.5, 0.5)],
        "PriorityQueue": [Times(0.1)],
    },
    {"T-Gate": "nobody built it"},
)


def result(name: str = "one", turn: int = 1, others: float = 0.0, found: Sequence[Table | Comparison] = ()) -> Result:
    """Return a result of a quiet machine, or of another."""
    return Result(name, ["--rows", "3"], turn, "2026-11-27T14:41:00+00:00", 12.5, others, 0.0).with_found(found)


def run(*results: Result, began: str = "2026-11-27T14:40:00+00:00", quick: bool = False, anyway: bool = False) -> Run:
    """Return a run of these results."""
    return Run(MACHINE, VERSIONS, began, quick, anyway, results)
