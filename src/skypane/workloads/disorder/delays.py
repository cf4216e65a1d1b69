"""Delays between a tuple's event time and its arrival, which put a stream out of order.

As in paper 1, section 4.3.2, a tuple's arrival (the paper's generator timestamp) is its event time (application
timestamp) plus a random delay, and tuples are delivered in the order of their arrivals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from skypane.types import ConfigError, Duration, FloatArray, IntArray
from skypane.workloads.argument_checks import SECOND, positive, seconds

DelayOf: TypeAlias = Callable[[IntArray, IntArray], IntArray]
"""(n,) ascending microseconds since the start, (n,) sources -> (n,) delays in microseconds, >= 0."""


class Delays(Protocol):
    """A distribution of delays."""

    def start(self, streams: int, rng: np.random.Generator) -> DelayOf:
        """Return the function that draws the delays of one stream from `streams` sources, chunk by chunk."""
        ...


@dataclass(frozen=True, slots=True)
class NoDelay:
    """No delay: every tuple arrives at its event time, and the stream is in order."""

    def start(self, streams: int, rng: np.random.Generator) -> DelayOf:  # noqa: ARG002
        """Return the function that returns zeros."""
        return lambda times, _: np.zeros_like(times)


@dataclass(frozen=True, slots=True)
class UniformDelay:
    """Delays uniform between 0 and twice `mean` (papers 1 and 5)."""

    mean: Duration

    def __post_init__(self) -> None:
        seconds("mean", self.mean)

    def start(self, streams: int, rng: np.random.Generator) -> DelayOf:  # noqa: ARG002
        """Return independent delays."""
        longest = 2 * seconds("mean", self.mean)
        return lambda times, _: _micros(longest * rng.random(len(times)))


@dataclass(frozen=True, slots=True)
class ExponentialDelay:
    """Exponential delays with the given `mean`."""

    mean: Duration

    def __post_init__(self) -> None:
        seconds("mean", self.mean)

    def start(self, streams: int, rng: np.random.Generator) -> DelayOf:  # noqa: ARG002
        """Return independent delays."""
        mean = seconds("mean", self.mean)
        return lambda times, _: _micros(mean * rng.standard_exponential(len(times)))


@dataclass(frozen=True, slots=True)
class ParetoDelay:
    """Heavy-tailed delays: P(delay > x) = (1 + x / scale)^-tail, scaled to `mean`; infinite variance for tail <= 2."""

    mean: Duration
    tail: float = 2.5

    def __post_init__(self) -> None:
        seconds("mean", self.mean)
        if not 1 < self.tail < math.inf:
            raise ConfigError(f"need 1 < tail < infinity for a finite mean, got tail={self.tail}")

    def start(self, streams: int, rng: np.random.Generator) -> DelayOf:  # noqa: ARG002
        """Return independent delays."""
        scale = seconds("mean", self.mean) * (self.tail - 1)
        # Exponential to Pareto: (1 - U)^(-1 / tail) = exp(E / tail).
        return lambda times, _: _micros(scale * np.expm1(rng.standard_exponential(len(times)) / self.tail))


@dataclass(frozen=True, slots=True)
class LognormalDelay:
    """Heavy-tailed delays: their logarithm is normal with deviation `sigma` around the logarithm of `median`."""

    median: Duration
    sigma: float = 1.0

    def __post_init__(self) -> None:
        seconds("median", self.median)
        positive("sigma", self.sigma)

    def start(self, streams: int, rng: np.random.Generator) -> DelayOf:  # noqa: ARG002
        """Return independent delays."""
        median = seconds("median", self.median)
        return lambda times, _: _micros(median * np.exp(self.sigma * rng.standard_normal(len(times))))


@dataclass(frozen=True, slots=True)
class EmpiricalDelay:
    """Measured delays (in microseconds), or equally likely quantiles of them, drawn with replacement."""

    measured: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.measured:
            raise ConfigError("need at least one measured delay, got none")
        if min(self.measured) < 0:
            raise ConfigError(f"need measured delays >= 0 microseconds, got {min(self.measured)}")

    def start(self, streams: int, rng: np.random.Generator) -> DelayOf:  # noqa: ARG002
        """Return independent delays."""
        measured = np.array(self.measured, dtype=np.int64)
        return lambda times, _: measured[rng.integers(0, len(measured), len(times))]


def _micros(delays: FloatArray) -> IntArray:
    """Return seconds as whole microseconds, cut off at a hundred years so that a timestamp can hold them."""
    longest = 100 * 365 * 86_400
    return np.asarray(np.rint(np.minimum(delays, longest) * SECOND).astype(np.int64))
