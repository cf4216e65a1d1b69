"""Points that kernels find hard: many ties, repeated rows, infinities, both zeros, values that differ in the last bit."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

Points = NDArray[np.float64]

ODD_VALUES = [-np.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, 1.0 + 2**-52, 2.0, 1e308, np.inf]


@st.composite
def points(draw: st.DrawFn, max_rows: int = 30, max_columns: int = 6) -> Points:
    """Some (n, d) points, n >= 0, in either memory order."""
    shape = draw(st.tuples(st.integers(0, max_rows), st.integers(1, max_columns)))
    elements = draw(
        st.sampled_from(
            [
                st.integers(0, 2).map(float),
                st.integers(0, 9).map(float),
                st.sampled_from(ODD_VALUES),
                st.floats(allow_nan=False),
            ]
        )
    )
    drawn = draw(hnp.arrays(np.float64, shape, elements=elements))
    return np.asfortranarray(drawn) if draw(st.booleans()) else drawn


def independent(n: int, d: int, rng: np.random.Generator) -> Points:
    return rng.random((n, d))


def front(n: int, d: int, rng: np.random.Generator) -> Points:
    """On a plane, all but rounding: nearly everything is skyline."""
    drawn = rng.random((n, d))
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def correlated(n: int, d: int, rng: np.random.Generator) -> Points:
    return rng.random((n, 1)) + 0.1 * rng.random((n, d))


def grid(n: int, d: int, rng: np.random.Generator) -> Points:
    return rng.integers(0, 5, (n, d)).astype(np.float64)


def odd(n: int, d: int, rng: np.random.Generator) -> Points:
    return rng.choice(ODD_VALUES, (n, d))


def heavy_tailed(n: int, d: int, rng: np.random.Generator) -> Points:
    """Most values share one of many equal cells of the column's range."""
    return np.asarray(np.exp(5.0 * rng.standard_normal((n, d))))


def by_a_hair(n: int, d: int, rng: np.random.Generator) -> Points:
    """Differences of a few units in the last place."""
    return np.asarray(1.0 + rng.integers(0, 40, (n, d)) * 2.0**-52)


def repeated(n: int, d: int, rng: np.random.Generator) -> Points:
    few = front(max(1, n // 20), d, rng)
    return few[rng.integers(0, len(few), n)]


DISTRIBUTIONS = [independent, front, correlated, grid, odd, heavy_tailed, by_a_hair, repeated]
