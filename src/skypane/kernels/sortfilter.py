"""Sort-filter skyline: rows in a monotone order, each tested against byte tiles of the skyline rows before it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skypane.kernels.order import monotone_order
from skypane.kernels.ranks import EMPTY, byte_ranks
from skypane.kernels.simd import LANES, NONE, ONE, bytes_le, first_bit
from skypane.types import BoolArray, FloatArray, IntArray

_FIRST_TILES: Final = 64


@njit(cache=True, nogil=True)
def _dominates(rows: FloatArray, a: int, b: int) -> bool:
    """Whether row a dominates row b."""
    less = False
    for j in range(rows.shape[1]):
        x = rows[a, j]
        y = rows[b, j]
        if x > y:
            return False
        less |= x < y
    return less


@njit(cache=True, nogil=True)
def _equal(rows: FloatArray, a: int, b: int) -> bool:
    for j in range(rows.shape[1]):
        if rows[a, j] != rows[b, j]:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def _lanes_le(tiles: NDArray[np.uint8], at: int, ranks: NDArray[np.uint8], i: int) -> np.uint64:
    """Lanes of one tile that are <= row i in all columns; columns come in pairs, which halves the branches."""
    lanes = bytes_le(tiles, at, ranks[i, 0]) & bytes_le(tiles, at + LANES, ranks[i, 1])
    j = 2
    while j < ranks.shape[1] and lanes != NONE:
        at += 2 * LANES
        lanes &= bytes_le(tiles, at, ranks[i, j]) & bytes_le(tiles, at + LANES, ranks[i, j + 1])
        j += 2
    return lanes


@njit(cache=True, nogil=True)
def _is_dominated(
    rows: FloatArray,
    ranks: NDArray[np.uint8],
    i: int,
    tiles: NDArray[np.uint8],
    minima: NDArray[np.uint8],
    members: IntArray,
    size: int,
) -> bool:
    """Whether a window row dominates row i: tile minima first, then tiles, then the values of lanes no rank excludes."""
    step = ranks.shape[1] * LANES
    for group in range((size + LANES * LANES - 1) // (LANES * LANES)):
        some = _lanes_le(minima, group * step, ranks, i)
        while some != NONE:
            tile = group * LANES + first_bit(some)
            some &= some - ONE
            lanes = _lanes_le(tiles, tile * step, ranks, i)
            while lanes != NONE:
                if _dominates(rows, members[tile * LANES + first_bit(lanes)], i):
                    return True
                lanes &= lanes - ONE
    return False


@njit(cache=True, nogil=True)
def _grown(array: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    out = np.full(size, np.uint8(EMPTY), np.uint8)
    out[: array.shape[0]] = array
    return out


@njit(cache=True, nogil=True)
def _append(
    ranks: NDArray[np.uint8], i: int, tiles: NDArray[np.uint8], minima: NDArray[np.uint8], size: int
) -> None:
    step = ranks.shape[1] * LANES
    tile = size // LANES
    for j in range(ranks.shape[1]):
        q = ranks[i, j]
        tiles[tile * step + j * LANES + size % LANES] = q
        at = tile // LANES * step + j * LANES + tile % LANES
        minima[at] = min(minima[at], q)


@njit(cache=True, nogil=True)
def _mark(rows: FloatArray, ranks: NDArray[np.uint8], order: IntArray, keep: BoolArray) -> None:
    """Set keep[i] for the skyline rows; in `order` no row is dominated by a later one, and equal rows are neighbours."""
    step = ranks.shape[1] * LANES
    room = _FIRST_TILES
    tiles = np.full(room * step, np.uint8(EMPTY), np.uint8)
    minima = np.full(room // LANES * step, np.uint8(EMPTY), np.uint8)
    members = np.empty(order.shape[0], np.int64)
    size = 0
    for k in range(order.shape[0]):
        i = order[k]
        if k > 0 and _equal(rows, order[k - 1], i):
            keep[i] = keep[order[k - 1]]
            continue
        if _is_dominated(rows, ranks, i, tiles, minima, members, size):
            continue
        if size == room * LANES:
            room *= 2
            tiles = _grown(tiles, room * step)
            minima = _grown(minima, room // LANES * step)
        _append(ranks, i, tiles, minima, size)
        members[size] = i
        size += 1
        keep[i] = True


def mark_skyline(columns: FloatArray, keep: BoolArray) -> None:
    """Set keep[i] for the skyline rows of (d, n) columns, n >= 1."""
    ranks = byte_ranks(columns)
    rows = np.ascontiguousarray(columns.T)
    _mark(rows, ranks, monotone_order(rows, ranks), keep)
