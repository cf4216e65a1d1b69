"""Points of the three classic distributions: independent, correlated, anticorrelated.

Drawn as the skyline operator's paper describes them (S. Börzsönyi, D. Kossmann, K. Stocker, "The Skyline Operator", ICDE
2001, section 4.1): a correlated or anticorrelated point starts on the diagonal of the unit cube, then value moves from each
column to the next; correlated moves peak at zero, anticorrelated ones are uniform. Points outside the cube are redrawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from skypane.types import FloatArray

_BELL: Final = 12  # uniform numbers whose mean stands for a normal one


def _peaked(
    low: FloatArray | float, high: FloatArray | float, of: int, size: int, rng: np.random.Generator
) -> FloatArray:
    """Means of `of` uniform numbers: they peak halfway between low and high."""
    return np.asarray(low + (high - low) * rng.random((of, size)).mean(axis=0))


def independent(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return (n, d) points, Fortran-ordered, uniform in the unit cube."""
    return np.asfortranarray(rng.random((d, n)).T)


def correlated(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return (n, d) points, Fortran-ordered: who is good in one column is good in the others."""
    return _moved(
        n, d, lambda m: _peaked(0.0, 1.0, d, m, rng), lambda reach: _peaked(-reach, reach, _BELL, reach.size, rng)
    )


def anticorrelated(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return (n, d) points, Fortran-ordered: who is good in one column is bad in another."""
    return _moved(n, d, lambda m: _peaked(0.25, 0.75, _BELL, m, rng), lambda reach: rng.uniform(-reach, reach))


def _moved(
    n: int, d: int, diagonal: Callable[[int], FloatArray], move: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Draw points on the diagonal, move value between neighbouring columns, keep those still inside."""
    kept: list[FloatArray] = []
    missing = n
    while missing > 0:
        centre = diagonal(2 * missing + 64)
        columns = np.tile(centre, (d, 1))
        reach = np.minimum(centre, 1.0 - centre)
        for j in range(d):
            step = move(reach)
            columns[j] += step
            columns[(j + 1) % d] -= step
        inside = columns[:, ((columns >= 0.0) & (columns <= 1.0)).all(axis=0)][:, :missing]
        kept.append(inside)
        missing -= inside.shape[1]
    return np.asfortranarray(np.concatenate(kept, axis=1).T)


DISTRIBUTIONS: Final = {"independent": independent, "correlated": correlated, "anticorrelated": anticorrelated}
