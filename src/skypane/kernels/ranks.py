"""Byte ranks: each column mapped to 0..254 by a monotone map, so that one vector compare covers 64 points.

x <= y in a column implies rank(x) <= rank(y); so values need comparing only where no rank forbids dominance. The map is
about equi-depth over a sample: exactness needs monotony alone, speed needs even depth. Infinities are ordinary values.

A column's range is cut into cells of equal width, and a table says each cell's rank: one multiplication and one load per
value. Where that is too coarse (a heavy tail puts most points into one cell), ranks come from sorted cuts by binary search,
which is ten times slower.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.compiled import kernel
from skypane.types import FloatArray

EMPTY: Final = 255
"""Rank of a lane that holds no point: above every rank, so it is <= none."""

_SAMPLE: Final = 512
_CELLS: Final = 1024
CROWDED: Final = 16
"""Different values of the sample in one cell that a column may have without needing cuts."""

_CUTS: Final = np.arange(1, 255)


@kernel
def sample_columns(columns: FloatArray, m: int) -> FloatArray:
    """Take m of n points: (d, n) -> (d, m); 1 <= m <= n. One from each of m strata, at a fixed pseudo-random place.

    Always the first of its stratum would be of one source only, where sources take turns in the input.
    """
    d, n = columns.shape
    stride = np.uint64(n // m)
    out = np.empty((d, m))
    for k in range(m):
        h = np.uint64(k) * np.uint64(0x9E3779B97F4A7C15)  # the golden ratio's fraction: spreads consecutive k
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
    """Ranks of each column's cells (d, 1024), and its (low, high, cells per unit) (d, 3).

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
            continue  # one finite value or none, or a range that over- or underflows
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
    """Rank = number of cuts <= x; cut holds 254 ascending ones, then +inf up to 256."""
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
    cuts: dict[int, FloatArray]  # of the columns whose cells are too coarse

    def ranks(self, columns: FloatArray) -> NDArray[np.uint8]:
        """Ranks (n, d) of frozen (d, n) columns without NaN."""
        out = np.empty(columns.shape[::-1], np.uint8)
        _rank_by_cells(columns, self.cells, self.scales, out)
        for j, cut in self.cuts.items():
            _rank_by_cuts(columns, j, cut, out)
        return out


def ranking(columns: FloatArray, crowded: int = CROWDED) -> Ranking:
    """Return a map that ranks values like those of frozen (d, n) columns, n >= 1, about evenly; others may be ranked too.

    A column with more than `crowded` different values of the sample, 512, in one cell gets cuts.
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
    """Ranks (n, d) of frozen (d, n) columns without NaN, n >= 1."""
    return ranking(columns).ranks(columns)
