"""Compiled loops that draw points of the classic distributions of skyline research, in [0, 1]^d."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar

import numpy as np

from skypane.types import FloatArray

_P = ParamSpec("_P")
_R = TypeVar("_R")


@cache
def _compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function on first use, without the GIL, cached on disk if a cache directory is writable."""
    from numba import njit  # noqa: PLC0415 - takes half a second, and a replay of a recording draws nothing

    try:
        compiled: Any = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no directory that Numba may write to
        compiled = njit(nogil=True)(function)
    return compiled  # type: ignore[no-any-return]


def fill_correlated(columns: FloatArray, rng: np.random.Generator, deviation: float) -> None:
    """Fill (d, n) columns: a peaked position on the diagonal, then a normal move of value from each column to the next.

    The standard deviation of a move is `deviation` times the distance to the nearest side.
    """
    _compiled(_fill_correlated)(columns, rng, deviation)


def fill_anticorrelated(columns: FloatArray, rng: np.random.Generator, deviation: float) -> None:
    """Fill (d, n) columns: a position near the middle of the diagonal, then uniform moves from each column to the next.

    `deviation` is the standard deviation of the position.
    """
    _compiled(_fill_anticorrelated)(columns, rng, deviation)


def _fill_correlated(columns: FloatArray, rng: np.random.Generator, deviation: float) -> None:
    d, n = columns.shape
    for i in range(n):
        inside = False
        while not inside:
            centre = 0.0
            for _ in range(d):
                centre += rng.random()
            centre /= d
            spread = min(centre, 1.0 - centre) * deviation
            first = rng.standard_normal() * spread
            move, inside = first, True
            for j in range(d):
                received = move
                move = rng.standard_normal() * spread if j + 1 < d else first
                value = centre + move - received
                inside = inside and 0.0 <= value <= 1.0
                columns[j, i] = value
                if not inside:
                    break


def _fill_anticorrelated(columns: FloatArray, rng: np.random.Generator, deviation: float) -> None:
    d, n = columns.shape
    for i in range(n):
        inside = False
        while not inside:
            centre = 0.5 + rng.standard_normal() * deviation
            if not 0.0 < centre < 1.0:
                continue
            reach = min(centre, 1.0 - centre)
            first = (2.0 * rng.random() - 1.0) * reach
            move, inside = first, True
            for j in range(d):
                received = move
                move = (2.0 * rng.random() - 1.0) * reach if j + 1 < d else first
                value = centre + move - received
                inside = inside and 0.0 <= value <= 1.0
                columns[j, i] = value
                if not inside:
                    break
