"""Random points for the kernels alone, against all pairs: many of a size at which another algorithm takes over.

    python -m tests.differential.points [--seconds S] [--cases N] [--seed SEED]    exit code 1 at the first failure

A case of the other kinds is a stream of rows, few of which are in one pane; what kernels do with hundreds that are not dominated
is seldom seen there.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tests.differential.alone import run
from tests.differential.case import IntArray
from tests.differential.definition.chosen import beaten_by
from tests.differential.draw import values
from tests.oracles import skyline_mask

from skypane.kernels import (
    dominance_factors,
    k_dominant_indices,
    skyline_indices,
    skyline_indices_by_group,
    top_delta_indices,
)

Floats = NDArray[np.float64]

_SIZES: Final = ((0, 24), (185, 200), (200, 520), (510, 530), (1_020, 1_060), (1_500, 2_600))
_SIZES_OFTEN: Final = (0.15, 0.2, 0.25, 0.15, 0.15, 0.1)
_MOST_COMPARED: Final = 700
"""Points of which every k is tried."""


@dataclass(frozen=True)
class Points:
    """Points (n, d), and a group for each."""

    seed: int
    points: Floats
    groups: IntArray

    def __str__(self) -> str:
        """The case in a few words; the seed says the rest."""
        return f"{len(self.points)} points of {self.points.shape[1]} criteria in {len(np.unique(self.groups))} groups"


def drawn(seed: int) -> Points:
    """Return the points of a seed."""
    rng = np.random.default_rng([seed, 3])
    low, high = _SIZES[int(rng.choice(len(_SIZES), p=_SIZES_OFTEN))]
    n, d = int(rng.integers(low, high)), int(rng.choice([1, 2, 2, 3, 3, 4, 5, 6, 8, 9]))
    shape = values.SHAPES[3] if rng.random() < 0.4 else values.SHAPES[rng.integers(len(values.SHAPES))]
    points = shape(rng, n, d)
    if rng.random() < 0.4:
        grid = int(rng.choice([3, 10, 30, 100]))
        points = np.floor(points * grid) / grid
    for j in range(d):
        points[:, j] = _stretched(rng, points[:, j])
    if n and rng.random() < 0.4:  # copies
        points = points[rng.integers(0, n, n)]
    groups = np.minimum(rng.zipf(1.3, n), 50) if rng.random() < 0.5 else rng.integers(0, int(rng.choice([1, 2, 9])), n)
    return Points(seed, points, groups.astype(np.int64))


def _stretched(rng: np.random.Generator, column: Floats) -> Floats:
    """Return a column in the same order: as it is, with a heavy tail, with infinities, negative."""
    style = rng.integers(6)
    if style == 0:
        return 1 / (1.001 - np.clip(column, 0, 1)) ** 4
    if style == 1:
        return np.where(column > 0.97, np.inf, column)
    return column - 0.5 if style == 2 else column


def failure(case: Points) -> str | None:
    """Return which kernel differs from the definition, and how; None if none does."""
    points, groups = case.points, case.groups
    mask = skyline_mask(points)
    skyline = np.flatnonzero(mask)
    wanted = {"skyline_indices": (skyline_indices(points), skyline)}
    by_group = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    best = np.sort(np.concatenate([np.empty(0, np.int64), *(mine[skyline_mask(points[mine])] for mine in by_group)]))
    wanted["skyline_indices_by_group"] = (skyline_indices_by_group(points, groups), best)
    if len(points) <= _MOST_COMPARED:
        wanted |= _k_dominance(case, skyline)
    return next((_difference_text(name, *pair) for name, pair in wanted.items() if not np.array_equal(*pair)), None)


def _k_dominance(case: Points, skyline: IntArray) -> dict[str, tuple[IntArray, IntArray]]:
    points, d = case.points, case.points.shape[1]
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in points.T]).astype(np.int64)
    beaten = {k: beaten_by(ranks, k) for k in range(1, d + 1)}
    found = {f"k_dominant_indices {k}": (k_dominant_indices(points, k), np.flatnonzero(~beaten[k])) for k in beaten}
    factors = np.sum([beaten[k][skyline] for k in beaten], axis=0)  # beaten for k, so for all less
    found["dominance_factors"] = (dominance_factors(points[skyline]), factors)
    for delta in (0, 1, 5, 40):
        k = next((k for k in beaten if np.count_nonzero(~beaten[k]) > delta), d)
        indices, k_star = top_delta_indices(points, delta)
        found[f"top_delta_indices {delta}"] = (
            np.append(np.sort(indices), k_star),
            np.append(np.flatnonzero(~beaten[k]), k),
        )
    return found


def _difference_text(name: str, found: IntArray, wanted: IntArray) -> str:
    return f"{name}: {np.setdiff1d(wanted, found)[:5]} missing, {np.setdiff1d(found, wanted)[:5]} too many"


def main() -> int:
    """Run what the arguments say; return the exit code."""
    return run("points", drawn, failure)


if __name__ == "__main__":
    sys.exit(main())
