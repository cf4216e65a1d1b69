"""Costs in virtual time: the size of a partition's result, and the seconds of a tuple and of a merge.

There are two regimes. With block nested loops, as in papers 1 and 5, a tuple is compared with the current result, so
its cost grows with the partition: splitting saves work, not only waiting time. With skypane's kernels, a pane is lifted
at once, and a tuple costs nearly the same in a large partition as in a small one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from skypane.kernels.batch_skyline import skyline_indices
from skypane.types import ConfigError, FloatArray, IntArray
from skypane.workloads.content.points import DISTRIBUTIONS


@dataclass(frozen=True, slots=True)
class ResultSize:
    """The size of the result of k tuples: min(k, scale k^exponent)."""

    scale: float
    exponent: float

    def of(self, tuples: FloatArray | IntArray | float) -> FloatArray:
        """Return the size of the result of `tuples` tuples."""
        count = np.asarray(tuples, np.float64)
        return np.minimum(count, self.scale * count**self.exponent)


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs in seconds, and the size of results.

    tuple_base     per tuple
    tuple_compare  per tuple and tuple in the partition's result when it arrives
    merge_base     per task of the window level
    merge_row      per row that a task reads
    merge_compare  per pair of rows of the two results that a task merges
    """

    size: ResultSize
    tuple_base: float
    tuple_compare: float
    merge_base: float
    merge_row: float
    merge_compare: float

    def __post_init__(self) -> None:
        for name in ("tuple_base", "tuple_compare", "merge_base", "merge_row", "merge_compare"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ConfigError(f"costs are seconds >= 0, got {name}={getattr(self, name)}")

    def tuples(self, most: int) -> FloatArray:
        """Return the seconds of a tuple in a partition with 0, 1, .. most - 1 tuples before it."""
        return np.asarray(self.tuple_base + self.tuple_compare * self.size.of(np.arange(most, dtype=np.int64)))

    def compared(self, most: int) -> FloatArray:
        """Return the seconds of a tuple in a partition with 0, 1, .. most - 1 rows in its result."""
        return np.asarray(self.tuple_base + self.tuple_compare * np.arange(most))

    def merge(self, first: float, second: float) -> float:
        """Return the seconds of a task that merges results of these sizes."""
        return self.merge_base + self.merge_row * (first + second) + self.merge_compare * first * second

    def comparing(self, seconds: float) -> CostModel:
        """Return the model in which a comparison of the second stage takes `seconds`."""
        return replace(self, merge_compare=seconds)

    def united(self, tuples: float, first: float, second: float, share: float = 1.0) -> float:
        """Return the size of the merge of two results of sizes `first` and `second`, of `tuples` tuples in total.

        share   size of the results of these tuples, as a share of the usual one
        """
        return min(first + second, share * float(self.size.of(tuples)))


def fitted_size(kind: str, d: int, seed: int = 0, most: int = 20_000, draws: int = 5) -> ResultSize:
    """Return the size of skylines of a distribution, fitted to skylines of sets of 50 to `most` points."""
    if kind not in DISTRIBUTIONS:
        raise ConfigError(
            f"sizes of results are fitted to points that are {', '.join(DISTRIBUTIONS)}, got {kind!r}; use exact ones"
        )
    rng = np.random.default_rng(seed)
    counts = np.unique(np.geomspace(50, most, 8).astype(int))
    sizes = [
        np.mean([len(skyline_indices(DISTRIBUTIONS[kind](int(count), d, rng))) for _ in range(draws)])
        for count in counts
    ]
    exponent, scale = np.polyfit(np.log(counts), np.log(sizes), 1)
    return ResultSize(float(np.exp(scale)), float(exponent))


INDEPENDENT_8D: Final = ResultSize(scale=2.70, exponent=0.751)
"""fitted_size("independent", 8)."""

BLOCK_NESTED_LOOPS: Final = CostModel(
    INDEPENDENT_8D, tuple_base=1e-6, tuple_compare=40e-9, merge_base=20e-6, merge_row=0.1e-6, merge_compare=40e-9
)
"""The papers' regime, d = 8, independent: with panes of 10K tuples, 100K tuples/s keep seven workers busy.

A comparison costs the same in both stages; measured with skypane's nested loops, it takes 1.3 to 1.6 times as long in
the second stage.
"""

KERNELS: Final = CostModel(
    INDEPENDENT_8D, tuple_base=1e-6, tuple_compare=0.0, merge_base=0.8e-3, merge_row=0.4e-6, merge_compare=0.0
)
"""skypane on Spark: a Python stage of a million rows a second, 0.8 ms a window and 0.4 us a row (control/costs.py)."""
