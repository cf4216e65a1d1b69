"""Byte tiles: the ranks of 64 points, one vector of 64 bytes per column, so that one comparison covers 64 points.

Tile t of d columns starts at flat index t * d * 64; point i is lane i % 64 of tile i // 64. Lanes without a point hold
a rank above all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skypane.kernels.byte_ranks import EMPTY
from skypane.kernels.compiled import kernel
from skypane.kernels.simd import LANES


@kernel
def empty_tiles(n: int, d: int) -> NDArray[np.uint8]:
    """Return empty tiles for n points of d columns."""
    return np.full((n + LANES - 1) // LANES * d * LANES, np.uint8(EMPTY), np.uint8)


@kernel
def put_ranks(tiles: NDArray[np.uint8], i: int, ranks: NDArray[np.uint8], k: int) -> None:
    """Write ranks[k] as the ranks of point i of the tiles."""
    d = ranks.shape[1]
    for j in range(d):
        tiles[(i // LANES * d + j) * LANES + i % LANES] = ranks[k, j]


@kernel
def tiles_of(ranks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the tiles of (n, d) ranks."""
    n, d = ranks.shape
    out = empty_tiles(n, d)
    for i in range(n):
        put_ranks(out, i, ranks, i)
    return out
