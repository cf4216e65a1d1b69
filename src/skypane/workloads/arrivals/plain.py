"""Arrivals with a constant rate: evenly spaced, or Poisson."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skypane.types import IntArray
from skypane.workloads.argument_checks import positive
from skypane.workloads.arrivals.sent import CHUNK, whole_micros


@dataclass(frozen=True, slots=True)
class Constant:
    """One tuple every 1/rate seconds; `rate` in tuples per second."""

    rate: float

    def __post_init__(self) -> None:
        positive("rate", self.rate)

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:  # noqa: ARG002
        """Yield chunks of ascending microseconds since the start, without end."""
        first = 0
        while True:
            yield whole_micros(np.arange(first, first + CHUNK) / self.rate)
            first += CHUNK


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent exponential gaps with mean 1/rate; index of dispersion 1 (paper 1, figure 5a)."""

    rate: float

    def __post_init__(self) -> None:
        positive("rate", self.rate)

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        now = 0.0
        while True:
            ends = now + np.cumsum(rng.standard_exponential(CHUNK)) / self.rate
            now = float(ends[-1])
            yield whole_micros(ends)
