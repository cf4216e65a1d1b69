"""Byte ranks: a monotone map of each column to 0..254, so that one vector comparison covers 64 points.

x <= y in a column implies rank(x) <= rank(y), so values need to be compared only where no rank excludes dominance. The
map is approximately equi-depth over a sample: exactness needs monotonicity only, speed needs even depth. Infinities are
ordinary values.

A column's range is divided into cells of equal width, and a table has the rank of each cell: one multiplication and one
load per value. Where that is too coarse (a heavy tail puts most points into one cell), ranks come from sorted cuts by
binary search, which is ten times slower.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.compiled import kernel
from skypane.types import FloatArray

EMPTY: Final = 255
"""Rank of a lane without a point: it is above all ranks of points, so the lane is <= no point."""

_SAMPLE: Final = 512
_CELLS: Final = 1024
CROWDED: Final = 16
"""Largest number of distinct sample values in one cell of a column without cuts."""

_CUTS: Final = np.arange(1, 255)


@kernel
def sample_columns(columns: FloatArray, m: int) -> FloatArray:
    """Return a sample of m of n points, (d, n) -> (d, m), 1 <= m <= n: one point of each of m strata.

    Its offset in the stratum is pseudo-random, and the same in all calls. Constant offsets would sample a single source
    where sources alternate in the input.
    """
    d, n = columns.shape
    stride = np.uint64(n // m)
    out = np.empty((d, m))
    for k in range(m):
        h = np.uint64(k) * np.uint64(0x9E3779B97F4A7C15)  # the fraction of the golden ratio spreads consecutive k
        i = np.uint64(k) * stride + (h >> np.uint64(32)) % stride
        for j in range(d):
            out[j, k] = columns[j, i]
    return out


@kernel
def _finite_range(values: FloatArray) -> tuple[float, float]:
    low = np.inf
    high = -np.inf
    for x in values:
        if abs(x) < np.inf:
            low = min(low, x)
            high = max(high, x)
    return low, high


@kernel
def _cells(sample: FloatArray, crowded: int) -> tuple[NDArray[np.uint8], FloatArray]:
    """Return the ranks of each column's cells, (d, 1024), and its low, high, and cells per unit, (d, 3).

    A column with 0 cells per unit needs cuts.
    """
    d, m = sample.shape
    ranks = np.zeros((d, _CELLS), np.uint8)
    scales = np.zeros((d, 3))
    step = (255 << 32) // (m + 1)
    sizes = np.empty(_CELLS, np.int32)
    first = np.empty(_CELLS)
    other = np.empty(_CELLS, np.int32)
    for j in range(d):
        low, high = _finite_range(sample[j])
        scale = (_CELLS - 1) / (high - low) if high > low else 0.0
        if not 0.0 < scale < np.inf:
            continue  # at most one distinct finite value, or a range that overflows or underflows
        sizes[:] = 0
        other[:] = 0
        crowd = 0
        for i in range(m):
            x = min(max(sample[j, i], low), high)
            cell = int((x - low) * scale)
            if sizes[cell] == 0:
                first[cell] = x
            sizes[cell] += 1
            other[cell] += x != first[cell]
            crowd = max(crowd, other[cell])
        if crowd > crowded:
            continue
        below = 0
        for cell in range(_CELLS):
            ranks[j, cell] = (below * step) >> 32  # below <= m, so at most 254; a division would cost ten times more
            below += sizes[cell]
        scales[j, 0] = low
        scales[j, 1] = high
        scales[j, 2] = scale
    return ranks, scales


@kernel
def _rank_by_cells(columns: FloatArray, cells: NDArray[np.uint8], scales: FloatArray, out: NDArray[np.uint8]) -> None:
    d, n = columns.shape
    for j in range(d):
        low, high, scale = scales[j]
        table = cells[j]
        if scale > 0.0:
            for i in range(n):
                x = min(max(columns[j, i], low), high)
                out[i, j] = table[np.uint64((x - low) * scale)]


@kernel
def _rank_by_cuts(columns: FloatArray, j: int, cut: FloatArray, out: NDArray[np.uint8]) -> None:
    """Write the ranks of column j, the numbers of cuts <= x; `cut` has 254 ascending cuts, padded with +inf to 256."""
    for i in range(columns.shape[1]):
        x = columns[j, i]
        k = 128 * (cut[127] <= x)
        k += 64 * (cut[k + 63] <= x)
        k += 32 * (cut[k + 31] <= x)
        k += 16 * (cut[k + 15] <= x)
        k += 8 * (cut[k + 7] <= x)
        k += 4 * (cut[k + 3] <= x)
        k += 2 * (cut[k + 1] <= x)
        k += cut[k] <= x
        out[i, j] = min(k, 254)  # +inf is also >= the padding


class Ranking(NamedTuple):
    """A monotone map of each column's values to ranks."""

    cells: NDArray[np.uint8]  # (d, 1024)
    scales: FloatArray  # (d, 3)
    cuts: dict[int, FloatArray]  # by column, for the columns whose cells are too coarse

    def ranks(self, columns: FloatArray) -> NDArray[np.uint8]:
        """Return the ranks, (n, d), of frozen (d, n) columns without NaN."""
        out = np.empty(columns.shape[::-1], np.uint8)
        _rank_by_cells(columns, self.cells, self.scales, out)
        for j, cut in self.cuts.items():
            _rank_by_cuts(columns, j, cut, out)
        return out


def ranking(columns: FloatArray, crowded: int = CROWDED) -> Ranking:
    """Return a map that ranks values distributed as those of frozen (d, n) columns, n >= 1, approximately evenly.

    It can rank other values too. A column with more than `crowded` distinct values of the sample of 512 in one cell
    gets cuts.
    """
    m = min(columns.shape[1], _SAMPLE)
    sample = sample_columns(columns, m)
    cells, scales = _cells(sample, crowded)
    return Ranking(cells, scales, {j: _cuts(sample[j]) for j in np.flatnonzero(scales[:, 2] == 0.0).tolist()})


def _cuts(sample: FloatArray) -> FloatArray:
    cut = np.full(256, np.inf)
    cut[:254] = np.sort(sample)[(_CUTS * sample.size) // 255]
    return cut


def byte_ranks(columns: FloatArray) -> NDArray[np.uint8]:
    """Return the ranks, (n, d), of frozen (d, n) columns without NaN, n >= 1."""
    return ranking(columns).ranks(columns)
