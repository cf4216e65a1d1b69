"""Points of the three classic distributions: independent, correlated, anticorrelated; all in [0, 1]^d.

They are drawn as the skyline operator's paper describes (S. Börzsönyi, D. Kossmann, K. Stocker, "The Skyline Operator",
ICDE 2001, section 4.1): a correlated or anticorrelated point starts on the diagonal of the unit cube, then value moves
from each column to the next; correlated moves peak at zero, anticorrelated ones are uniform. Points outside the cube
are redrawn. The original approximates a normal number by the mean of twelve uniform numbers; here a normal number is
drawn.

With one column no value can move, and the three distributions differ only in the position on the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray
from skypane.workloads.argument_checks import at_least
from skypane.workloads.content.draw import fill_anticorrelated, fill_correlated

Kind: TypeAlias = Literal["independent", "correlated", "anticorrelated"]


def independent(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return (n, d) points, Fortran-ordered, uniform in the unit cube."""
    return np.asarray(rng.random((d, n)).T)


MOVES: Final = 1 / 6
"""The mean of twelve uniform numbers in [-x, x] has the standard deviation x / 6."""
PLACES: Final = 1 / 24
"""The mean of twelve uniform numbers in [0.25, 0.75] has the standard deviation 0.5 / 12."""


def correlated(n: int, d: int, rng: np.random.Generator, deviation: float = MOVES) -> FloatArray:
    """Return (n, d) points, Fortran-ordered, that are good in all columns or bad in all.

    deviation   standard deviation of a move, relative to the distance to the cube's nearest side; a larger one means
                less correlation
    """
    columns = np.empty((d, n))
    fill_correlated(columns, rng, deviation)
    return columns.T


def anticorrelated(n: int, d: int, rng: np.random.Generator, deviation: float = PLACES) -> FloatArray:
    """Return (n, d) points, Fortran-ordered, that are good in one column and bad in another.

    deviation   standard deviation of the position on the diagonal; a larger one means less anticorrelation and fewer
                undominated points
    """
    columns = np.empty((d, n))
    fill_anticorrelated(columns, rng, deviation)
    return columns.T


DISTRIBUTIONS: Final[dict[str, Callable[[int, int, np.random.Generator], FloatArray]]] = {
    "independent": independent,
    "correlated": correlated,
    "anticorrelated": anticorrelated,
}


class PointDistribution(Protocol):
    """A distribution from which the criteria of tuples are drawn."""

    @property
    def d(self) -> int: ...

    def draw(self, times: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return (n, d) points, Fortran-ordered, of tuples at `times`, in microseconds since the start."""
        ...


@dataclass(frozen=True, slots=True)
class Classic:
    """`d` criteria of one of the classic distributions."""

    kind: Kind = "independent"
    d: int = 8

    def __post_init__(self) -> None:
        check_dimensions(self.d)
        check_kind(self.kind)

    def draw(self, times: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return (n, d) points, Fortran-ordered; they do not depend on the times."""
        return DISTRIBUTIONS[self.kind](len(times), self.d, rng)


MOST_DIMENSIONS: Final = 16


def check_dimensions(d: int) -> None:
    """Raise ConfigError unless 1 <= d <= 16; with more columns, anticorrelated points hardly ever lie in the cube."""
    at_least("d", 1, d)
    if d > MOST_DIMENSIONS:
        raise ConfigError(f"need d <= {MOST_DIMENSIONS}, got d={d}")


def check_kind(kind: str) -> None:
    """Raise ConfigError unless `kind` names a classic distribution."""
    if kind not in DISTRIBUTIONS:
        raise ConfigError(f"need one of {', '.join(DISTRIBUTIONS)} for the points, got {kind!r}")
