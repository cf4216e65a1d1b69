r"""The streams of paper 3, section 6.1.1: 80 sources with rates that are constant, vary in pairs or together, or burst.

constw   constant rates, uniform between `low` and `high`
psfcw    pairs of sources swap a low and a high rate in steps, so that the total stays constant     _|-|_   -|_|-
ptfcw    as psfcw, with linear trends instead of steps                                             /\/\   \/\/
sfvar    all sources step between low and high at the same times, so that the total varies
tfvar    as sfvar, with linear trends instead of steps
bursty   on/off: evenly spaced tuples while active, none while idle, both periods exponential
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from skypane.types import ConfigError, Duration, FloatArray
from skypane.workloads.argument_checks import at_least, positive, seconds
from skypane.workloads.arrivals.phases import ExponentialPeriods, Phases, pieces
from skypane.workloads.arrivals.rates import RateSegments, evenly, poisson
from skypane.workloads.arrivals.sent import SentTuples

STREAMS: Final = 80

_GRAIN: Final = 64
"""Pieces per period of a fluctuation: a trend is a staircase of so many steps, exact at the middle of each piece."""


@dataclass(frozen=True, slots=True)
class ConstantFleet:
    """Poisson sources with constant rates, drawn uniformly from [low, high] tuples per second (constw)."""

    low: float
    high: float
    streams: int = STREAMS

    def __post_init__(self) -> None:
        _check(self.low, self.high, self.streams)

    def sent(self, rng: np.random.Generator) -> Iterator[SentTuples]:
        """Yield chunks of tuples in the order of their event times, without end."""
        rates = rng.uniform(self.low, self.high, self.streams)

        def constant_pieces() -> Iterator[RateSegments]:
            while True:
                yield RateSegments(np.ones(1), rates[None, :])

        return poisson(constant_pieces(), rng)


@dataclass(frozen=True, slots=True)
class FluctuatingFleet:
    """Poisson sources that each alternate between two rates, drawn once, uniformly from [low, high] tuples per second.

    A source is high for half of each `period`. `shape`: "step" jumps, "trend" moves linearly. `total`: with "constant",
    sources 2i and 2i+1 have the same two rates at opposite times (psfcw, ptfcw), and each pair has its own phase; with
    "varying", all rise and fall together (sfvar, tfvar).
    """

    low: float
    high: float
    period: Duration = "1 minute"
    shape: Literal["step", "trend"] = "step"
    total: Literal["constant", "varying"] = "constant"
    streams: int = STREAMS

    def __post_init__(self) -> None:
        _check(self.low, self.high, self.streams)
        seconds("period", self.period)
        if self.shape not in {"step", "trend"}:
            raise ConfigError(f"need shape 'step' or 'trend', got shape={self.shape!r}")
        if self.total not in {"constant", "varying"}:
            raise ConfigError(f"need total 'constant' or 'varying', got total={self.total!r}")
        if self.total == "constant" and self.streams % 2:
            raise ConfigError(f"need an even number of streams to fluctuate in pairs, got streams={self.streams}")

    def sent(self, rng: np.random.Generator) -> Iterator[SentTuples]:
        """Yield chunks of tuples in the order of their event times, without end."""
        return poisson(self._pieces(rng), rng)

    def _pieces(self, rng: np.random.Generator) -> Iterator[RateSegments]:
        pairs = (self.streams + 1) // 2
        if self.total == "constant":
            bounds = np.repeat(rng.uniform(self.low, self.high, (pairs, 2)), 2, axis=0)
            phases = np.repeat(rng.random(pairs), 2) + np.tile([0.0, 0.5], pairs)
        else:
            bounds = rng.uniform(self.low, self.high, (self.streams, 2))
            phases = np.zeros(self.streams)
        lowest, highest = bounds.min(axis=1), bounds.max(axis=1)
        # Rounded to the grain, so that steps fall on the ends of pieces and opposite sources step at the same time.
        phases = np.floor(phases * _GRAIN) / _GRAIN
        places = (np.arange(_GRAIN)[:, None] + 0.5) / _GRAIN + phases[None, :]
        rates = lowest + (highest - lowest) * self._height(places % 1.0)
        lengths = np.full(_GRAIN, seconds("period", self.period) / _GRAIN)
        while True:
            yield RateSegments(lengths, rates)

    def _height(self, place: FloatArray) -> FloatArray:
        """Return the height, 0 (low) to 1 (high), at a position in [0, 1) of the period."""
        if self.shape == "step":
            return np.asarray((place >= 0.5).astype(np.float64))
        return np.asarray(1 - np.abs(2 * place - 1))


@dataclass(frozen=True, slots=True)
class BurstyFleet:
    """Sources that send `rate` tuples per second, evenly spaced, while active, and nothing while idle (bursty)."""

    rate: float
    active: Duration = "5 seconds"
    idle: Duration = "5 seconds"
    streams: int = STREAMS

    def __post_init__(self) -> None:
        positive("rate", self.rate)
        seconds("active", self.active)
        seconds("idle", self.idle)
        at_least("streams", 1, self.streams)

    def sent(self, rng: np.random.Generator) -> Iterator[SentTuples]:
        """Yield chunks of tuples in the order of their event times, without end."""
        active, idle = seconds("active", self.active), seconds("idle", self.idle)
        phases = Phases(ExponentialPeriods(active), ExponentialPeriods(idle), self.streams, rng)
        return evenly(pieces(phases, np.full(self.streams, self.rate), active + idle), rng)


def _check(low: float, high: float, streams: int) -> None:
    at_least("streams", 1, streams)
    positive("low", low)
    if not low <= high < np.inf:
        raise ConfigError(f"need low <= high < infinity, got low={low}, high={high}")
