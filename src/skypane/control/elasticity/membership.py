"""Fuzzy sets: membership grades of a value in terms, from 0 to 1 (paper 5, section 4.2, figure 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skypane.types import ConfigError, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Trapezoid:
    """Membership function: 0 up to `left_foot`, 1 from `left` to `right`, 0 from `right_foot` on, linear in between.

    A triangle has left = right. A foot equal to its shoulder is a step; an infinite foot means an open end.
    """

    left_foot: float
    left: float
    right: float
    right_foot: float

    def __post_init__(self) -> None:
        if not self.left_foot <= self.left <= self.right <= self.right_foot:
            raise ConfigError(f"vertices of a trapezoid must ascend, got {self}")

    def grade(self, x: FloatArray) -> FloatArray:
        """Return the membership grade of each value; NaN for NaN."""
        return np.clip(np.minimum(_ramp(x, self.left_foot, self.left), _ramp(-x, -self.right_foot, -self.right)), 0, 1)


def _ramp(x: FloatArray, foot: float, shoulder: float) -> FloatArray:
    """Return a line through 0 at the foot and 1 at the shoulder; a step up if both are equal."""
    if math.isinf(shoulder) or foot == shoulder:
        return np.where(np.isnan(x), np.nan, np.where(x >= foot, 1.0, 0.0))
    with np.errstate(invalid="ignore"):
        return np.asarray((x - foot) / (shoulder - foot))


@dataclass(frozen=True, slots=True)
class Speeds:
    """The terms of RHO_PLQ and RHO_WLQ."""

    fast: Trapezoid = Trapezoid(0.0, 0.0, 0.5, 0.9)
    acceptable: Trapezoid = Trapezoid(0.5, 0.9, 0.9, 1.3)
    slow: Trapezoid = Trapezoid(0.9, 1.3, math.inf, math.inf)

    def grades(self, rho: FloatArray) -> FloatArray:
        """Return (k, 3): fast, acceptable, slow of k utilisation factors."""
        return np.stack([term.grade(rho) for term in (self.fast, self.acceptable, self.slow)], axis=-1)


@dataclass(frozen=True, slots=True)
class Splittings:
    """The terms of SPLITTING; the paper's shoulders are the quartiles of its authors' measured splitting factors.

    end   end of "intensive" relative to N, the largest number of workers: -1 for N - 1; None: no end
    """

    moderate: Trapezoid = Trapezoid(0.0, 0.0, 1.5, 4.5)
    intensive: Trapezoid = Trapezoid(1.5, 4.5, math.inf, math.inf)
    end: float | None = None

    def grades(self, sigma: FloatArray, most: IntArray) -> FloatArray:
        """Return (k, 2): moderate, intensive of k splitting factors, with at most `most` workers each."""
        intensive = self.intensive.grade(sigma)
        if self.end is not None:
            intensive = np.where(sigma <= most + self.end, intensive, 0.0)
        return np.stack([self.moderate.grade(sigma), intensive], axis=-1)
