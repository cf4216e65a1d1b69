"""Definitions, written to be read: what the fast operators must agree with, row for row."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Row = Sequence[float]


def dominates(s: Row, t: Row) -> bool:
    """s is better or equal in all columns and strictly better in one; smaller is better."""
    return all(a <= b for a, b in zip(s, t, strict=True)) and any(a < b for a, b in zip(s, t, strict=True))


def k_dominates(s: Row, t: Row, k: int) -> bool:
    """There are k columns in which s is better or equal, and strictly better in at least one of those k."""
    return any(dominates([s[j] for j in js], [t[j] for j in js]) for js in combinations(range(len(s)), k))


def skyline_indices(points: Points) -> list[int]:
    """Rows that no row dominates."""
    rows = points.tolist()
    return [i for i, t in enumerate(rows) if not any(dominates(s, t) for s in rows)]


def skyline_indices_by_group(points: Points, groups: Sequence[int]) -> list[int]:
    """Rows that no row of the same group dominates."""
    rows = list(zip(points.tolist(), groups, strict=True))
    return [i for i, (t, g) in enumerate(rows) if not any(h == g and dominates(s, t) for s, h in rows)]


def dominance_factors(points: Points) -> list[int]:
    """For each row, the largest k such that another row k-dominates it; 0 if none does."""
    rows = points.tolist()
    ks = range(1, points.shape[1] + 1)
    return [max((k for k in ks if any(k_dominates(s, t, k) for s in rows)), default=0) for t in rows]


def k_dominant_indices(points: Points, k: int) -> list[int]:
    """Rows that no row of the whole set k-dominates: DSP(k)."""
    rows = points.tolist()
    return [i for i, t in enumerate(rows) if not any(k_dominates(s, t, k) for s in rows)]


def top_delta_indices(points: Points, delta: int) -> tuple[list[int], int]:
    """DSP(k*) in order of (factor, row), and k*: the smallest k with more than delta rows in DSP(k), else d."""
    d = points.shape[1]
    k_star = next((k for k in range(1, d + 1) if len(k_dominant_indices(points, k)) > delta), d)
    factors = dominance_factors(points)
    return sorted(k_dominant_indices(points, k_star), key=lambda i: (factors[i], i)), k_star


def skyline_mask(points: Points) -> NDArray[np.bool_]:
    """skyline_indices as a mask: the same definition, for thousands of rows."""
    columns = np.asfortranarray(points)
    some = (dominators(columns, points[first : first + 64]) for first in range(0, len(points), 64))
    return ~np.concatenate([np.empty(0, np.bool_), *(found.any(axis=-1) for found in some)])


def dominators(points: Points, t: Points) -> NDArray[np.bool_]:
    """Which of (n, d) points dominate t, or each row of t; a column at a time is several times as fast, best on Fortran order."""
    no_worse = np.ones((*t.shape[:-1], len(points)), np.bool_)
    better = ~no_worse
    for column, value in zip(points.T, t.T, strict=True):
        no_worse &= column <= value[..., None]
        better |= column < value[..., None]
    return no_worse & better


def cut_off(numbers: Sequence[float]) -> Fraction:
    """n |M| / 2**96: what a sum of n finite floats, of which M is the largest, may be off by beside a unit in its last place."""
    return len(numbers) * max(abs(Fraction(number)) for number in numbers) / 2**96
