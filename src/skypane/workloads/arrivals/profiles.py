"""Poisson arrivals with a varying rate: steps, a random walk, or on/off periods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Final

import numpy as np

from skypane.types import ConfigError, Duration, FloatArray, IntArray
from skypane.workloads.argument_checks import positive, seconds
from skypane.workloads.arrivals.phases import ExponentialPeriods, Phases, pieces
from skypane.workloads.arrivals.rates import RateSegments, poisson

FIGURE_9: Final = (40_000.0, 50_000.0, 70_000.0, 80_000.0, 60_000.0, 40_000.0)
"""Tuples per second of paper 5's artificial scenario (section 5.2, figure 9), each for 30 seconds."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The given rates (tuples per second), each for `every`, repeated cyclically (paper 5, figure 9)."""

    rates: tuple[float, ...] = FIGURE_9
    every: Duration = "30 seconds"

    def __post_init__(self) -> None:
        seconds("every", self.every)
        if not self.rates or min(self.rates) < 0 or not 0 < max(self.rates) < math.inf:
            raise ConfigError(f"need rates >= 0, one of them above 0, got rates={self.rates}")

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        return times_of(constant_pieces(cycle([np.array(self.rates)]), seconds("every", self.every)), rng)


@dataclass(frozen=True, slots=True)
class RandomWalk:
    """A rate whose logarithm takes a normal step every `every` (paper 5, section 5.3: lognormal, 5 s).

    The walk is reflected at two bounds whose ratio is `span`^2, so that the rate neither vanishes nor explodes; its
    stationary distribution is uniform over the log-rates between them. The bounds are set so that the long-run mean is
    `rate`, and the start is drawn from the stationary distribution.
    """

    rate: float
    sigma: float = 0.25
    every: Duration = "5 seconds"
    span: float = 4.0

    def __post_init__(self) -> None:
        positive("rate", self.rate)
        positive("sigma", self.sigma)
        seconds("every", self.every)
        if not 1 < self.span < math.inf:
            raise ConfigError(f"need 1 < span < infinity, got span={self.span}")

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest rate, c / span and c * span, where the mean c (span - 1/span) / (2 ln span) is `rate`."""
        centre = self.rate * 2 * math.log(self.span) / (self.span - 1 / self.span)
        return centre / self.span, centre * self.span

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        return times_of(constant_pieces(self._walk(rng), seconds("every", self.every)), rng)

    def _walk(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        lowest, highest = np.log(self.bounds)
        width = highest - lowest
        place = float(rng.random() * width)
        while True:
            free = place + np.cumsum(np.append(0.0, self.sigma * rng.standard_normal(64)))
            # Folding a free walk onto [0, width] reflects it at both ends.
            folded = width - np.abs(np.mod(free, 2 * width) - width)
            yield np.exp(lowest + folded[:-1])
            place = float(folded[-1])


@dataclass(frozen=True, slots=True)
class OnOff:
    """Poisson arrivals in on periods, none in off periods, both exponential; `rate` is the mean over both."""

    rate: float
    on: Duration = "1 second"
    off: Duration = "1 second"

    def __post_init__(self) -> None:
        positive("rate", self.rate)
        seconds("on", self.on)
        seconds("off", self.off)

    @property
    def dispersion(self) -> float:
        """Index of dispersion, 1 + 2 rate off^2 / (on + off) for a Poisson stream switched by exponential periods."""
        on, off = seconds("on", self.on), seconds("off", self.off)
        return 1 + 2 * self.rate * off**2 / (on + off)

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        on, off = seconds("on", self.on), seconds("off", self.off)
        phases = Phases(ExponentialPeriods(on), ExponentialPeriods(off), 1, rng)
        peak = np.array([self.rate * (on + off) / on])
        return times_of(pieces(phases, peak, 64 * (on + off)), rng)


def constant_pieces(rates: Iterator[FloatArray], every: float) -> Iterator[RateSegments]:
    """Yield the rates of one stream as pieces of `every` seconds with one rate each."""
    for chunk in rates:
        yield RateSegments(np.full(len(chunk), every), chunk[:, None])


def times_of(parts: Iterator[RateSegments], rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield the event times of one Poisson stream with the given rates."""
    return (sent.times for sent in poisson(parts, rng))
