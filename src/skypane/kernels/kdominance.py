"""k-dominance, the relaxation behind the k-dominant skyline and the top-delta query (paper 1, section 2.1).

s k-dominates t if s is better or equal in k columns, and strictly better in one of them. The k-dominant skyline,
DSP(k), is the set of points that no point k-dominates. With factor(t) = the largest k such that a point k-dominates t,
DSP(k) is {t: factor(t) < k}. Every DSP(k) is a subset of the skyline, and every k-dominated point is k-dominated by a
skyline point. So it suffices to compare skyline points with one another; all of them are needed, since k-dominance is
cyclic: a point may be k-dominated only by points outside DSP(k). For two different skyline points s and t with s <= t
in some column, s < t holds in some column (otherwise t would dominate s). Hence, without the points equal to t,

    factor(t) = max over s != t of |{j: s_j <= t_j}|
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.batch_skyline import require_numbers, skyline_of_columns
from skypane.kernels.column_layout import columns_of
from skypane.kernels.compiled import kernel
from skypane.kernels.gathering import take_points
from skypane.kernels.simd import LANES, NONE, ONE, first_bit, lanes_le_in_more_than, most_columns_lt
from skypane.kernels.tiles import tiles_of
from skypane.kernels.z_order import in_z_order, without_repeats
from skypane.types import FloatArray, IntArray

_ALL_FACTORS: Final = -1


class Opponents(NamedTuple):
    """Distinct skyline points, each of which is compared with all others."""

    points: FloatArray  # (n, d)
    ranks: NDArray[np.uint8]  # (n, d)
    tiles: NDArray[np.uint8]  # the same ranks


@kernel
def _columns_le(points: FloatArray, a: int, b: int) -> int:
    count = 0
    for j in range(points.shape[1]):
        count += points[a, j] <= points[b, j]
    return int(count)


@kernel
def _factor(opponents: Opponents, i: int, stop: int) -> int:
    """Return the factor of point i, or a lower bound of it that is >= stop.

    Rank <= is necessary for value <=, and rank < is sufficient: the former bounds the count of a lane from above, the
    latter from below. Values are compared only in lanes whose upper bound exceeds the largest count known.
    """
    points, ranks, tiles = opponents
    d = points.shape[1]
    largest = 0
    for tile in range(tiles.shape[0] // (d * LANES)):
        at = tile * d * LANES
        lanes = lanes_le_in_more_than(tiles, at, ranks, i, largest)
        if lanes == NONE:
            continue
        largest = max(largest, most_columns_lt(tiles, at, ranks, i, 0))
        if largest >= stop:
            break
        lanes = lanes_le_in_more_than(tiles, at, ranks, i, largest)
        while lanes != NONE:
            other = tile * LANES + first_bit(lanes)
            lanes &= lanes - ONE
            if other != i:
                largest = max(largest, _columns_le(points, other, i))
        if largest >= stop:
            break
    return int(largest)


@kernel
def _factors(opponents: Opponents, copies: IntArray, stop: int, delta: int) -> IntArray:
    """Return the factors of n distinct points, exact below `stop`, else some number >= stop.

    Point i occurs copies[i] times. With delta >= 0, only factors <= f need to be exact, where f is the smallest factor
    that more than delta points do not exceed: `stop` then falls to f + 1. The most promising points come first, so that
    it falls early and most other points are abandoned after a tile or two.
    """
    n, d = opponents.points.shape
    out = np.empty(n, np.int64)
    counts = np.zeros(d + 1, np.int64)  # points by exact factor
    for i in range(n):
        out[i] = _factor(opponents, i, min(stop, d - 1))  # d - 1 is the largest possible factor
        if delta >= 0 and out[i] < stop:
            counts[out[i]] += copies[i]
            below = 0
            for f in range(stop - 1):
                below += counts[f]
                if below > delta:
                    stop = f + 1
                    break
    return out


def _all_factors(columns: FloatArray, stop: int, delta: int) -> IntArray:
    """Return _factors() of the (d, n) columns of skyline points, n >= 1; points may be equal."""
    ordered = in_z_order(columns)
    points, ranks, firsts = without_repeats(ordered)
    copy_of = np.cumsum(~ordered.repeats) - 1
    # Points with a small rank sum are hard to k-dominate and k-dominate many: they come first on both sides.
    by_sum = np.argsort(ranks.sum(axis=1, dtype=np.int64))
    place = np.empty_like(by_sum)
    place[by_sum] = np.arange(by_sum.size)
    copies = np.bincount(copy_of)[by_sum]
    ranks = ranks[by_sum]
    factors = _factors(Opponents(points[firsts[by_sum]], ranks, tiles_of(ranks)), copies, int(stop), int(delta))
    out = np.empty(copy_of.size, np.int64)
    out[ordered.candidates.order] = factors[place[copy_of]]
    return out


def dominance_factors(points: Any) -> IntArray:
    """Return, for each of n mutually non-dominated rows, the largest k such that another row k-dominates it, else 0.

    `points` is (n, d), smaller is better, without NaN; rows may be equal, and equal rows do not k-dominate each other.
    The result is int64 (n,), at most d - 1.
    """
    columns = columns_of(points)
    require_numbers(columns)
    if columns.shape[1] == 0:
        return np.empty(0, np.int64)
    return _all_factors(columns, columns.shape[0] - 1, _ALL_FACTORS)


def k_dominant_indices(points: Any, k: int, *, only_skyline: bool = False) -> IntArray:
    """Return the k-dominant skyline DSP(k): the indices of the rows that no row k-dominates, int64, ascending.

    `points` is (n, d), 1 <= k <= d. `only_skyline` promises that `points` are mutually non-dominated, which saves the
    computation of their skyline.
    """
    columns = columns_of(points)
    d = columns.shape[0]
    if not 1 <= k <= d:
        raise ValueError(f"need 1 <= k <= d, got k={k}, d={d}")
    skyline, columns = _skyline(columns, only_skyline)
    if skyline.size == 0 or k == d:
        return skyline
    return skyline[_all_factors(columns, k, _ALL_FACTORS) < k]


def top_delta_indices(points: Any, delta: int, *, only_skyline: bool = False) -> tuple[IntArray, int]:
    """Return (indices, k_star); k_star is the smallest k with more than `delta` k-dominant rows, or d if none exists.

    `indices` is DSP(k_star), int64, ordered by (factor, index), least dominated first. `points` is (n, d), delta >= 0.
    `only_skyline` as for k_dominant_indices. Source: paper 1, section 2.1.
    """
    columns = columns_of(points)
    d = columns.shape[0]
    if delta < 0:
        raise ValueError(f"need delta >= 0, got delta={delta}")
    skyline, columns = _skyline(columns, only_skyline)
    if skyline.size == 0:
        return skyline, d
    factors = _all_factors(columns, d, delta)
    at_most = np.cumsum(np.bincount(factors, minlength=d)[:d])
    enough = np.flatnonzero(at_most > delta)
    k_star = int(enough[0]) + 1 if enough.size else d
    chosen = np.flatnonzero(factors < k_star)
    return skyline[chosen[np.argsort(factors[chosen], kind="stable")]], k_star


def _skyline(columns: FloatArray, only_skyline: bool) -> tuple[IntArray, FloatArray]:
    if only_skyline:
        require_numbers(columns)
        return np.arange(columns.shape[1]), columns
    skyline = skyline_of_columns(columns)
    return skyline, take_points(columns, skyline)
