"""Forecasts of the rates of many streams: Holt's linear trend with parameters fitted to each stream (paper 3, 2.3).

The recursion is that of skypane.control.forecast.Holt, for all streams and all candidate parameters at once. Other
forecasters implement the same method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np

from skypane.control.forecast import Holt
from skypane.types import BoolArray, ConfigError, FloatArray

CANDIDATES = tuple(
    Holt(level, trend) for level, trend in product((0.1, 0.2, 0.35, 0.5, 0.7, 0.9), (0.0, 0.1, 0.3, 0.6))
)
"""Candidate parameters; forecasts of neighbouring candidates hardly differ."""


class Forecaster(ABC):
    """Interface of forecasters; subclasses are frozen."""

    @abstractmethod
    def forecast(self, rates: FloatArray, periods: int) -> FloatArray:
        """Return the (n, periods) rates of the next periods, not negative, from the (n, t) rates of the last ones.

        The row of a stream that is younger than t periods starts with NaN; a row of NaN only gives NaN forecasts.
        """


@dataclass(frozen=True)
class HoltForecaster(Forecaster):
    """For each stream, the candidate with the smallest mean squared one-period error so far.

    Until a stream has `fitted_from` observations, `first` is used.
    """

    candidates: tuple[Holt, ...] = CANDIDATES
    first: Holt = field(default_factory=Holt)
    fitted_from: int = 8

    def __post_init__(self) -> None:
        if not self.candidates:
            raise ConfigError("candidates: a forecaster needs at least one candidate, got none")

    def forecast(self, rates: FloatArray, periods: int) -> FloatArray:
        every = (self.first, *self.candidates)
        smoothed = smooth(rates, every)
        chosen = 1 + smoothed.errors[:, 1:].argmin(axis=1)
        chosen[np.isfinite(rates).sum(axis=1) < self.fitted_from] = 0
        rows = np.arange(len(rates))
        level, trend = smoothed.levels[rows, chosen], smoothed.trends[rows, chosen]
        ahead: FloatArray = level[:, None] + trend[:, None] * np.arange(1, periods + 1)
        return np.maximum(ahead, 0.0)


class Smoothed(NamedTuple):
    """(n, candidates) each: levels, trends, and sums of squared one-period errors."""

    levels: FloatArray
    trends: FloatArray
    errors: FloatArray


def smooth(rates: FloatArray, candidates: tuple[Holt, ...]) -> Smoothed:
    """Run each candidate over each row of (n, t) rates; NaN is a missing observation."""
    alpha = np.array([holt.level for holt in candidates])
    gamma = np.array([holt.trend for holt in candidates])
    shape = (len(rates), len(candidates))
    levels, trends, errors = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
    for values in rates.T[:, :, None]:
        expected = levels + trends
        known: BoolArray = np.isfinite(values)
        first = np.isnan(levels)
        errors += np.where(known & ~first, np.square(values - expected), 0.0)
        level = np.where(first, values, alpha * values + (1 - alpha) * expected)
        trend = np.where(first, 0.0, gamma * (level - levels) + (1 - gamma) * trends)
        levels, trends = np.where(known, level, levels), np.where(known, trend, trends)
    return Smoothed(levels, trends, errors)
