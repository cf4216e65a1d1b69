"""Sources that alternate between on and off, and their state at given times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from skypane.types import BoolArray, FloatArray, IntArray
from skypane.workloads.arrivals.rates import RateSegments

_AHEAD: Final = 16
"""Periods drawn at a time for each source."""


class Periods(Protocol):
    """A distribution of period lengths, in seconds."""

    @property
    def mean(self) -> float: ...

    def lengths(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draw lengths of whole periods."""
        ...

    def remainders(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the remaining lengths of periods at a random time within them."""
        ...


@dataclass(frozen=True, slots=True)
class ExponentialPeriods:
    """Exponential, that is memoryless, periods."""

    mean: float

    def lengths(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return self.mean * rng.standard_exponential(size)

    def remainders(self, size: int, rng: np.random.Generator) -> FloatArray:
        return self.lengths((size,), rng)


@dataclass(frozen=True, slots=True)
class ParetoPeriods:
    """Pareto periods: P(X > x) = (least / x)^tail for x >= least; for 1 < tail < 2 only the mean is finite."""

    mean: float
    tail: float

    @property
    def least(self) -> float:
        return self.mean * (self.tail - 1) / self.tail

    def lengths(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return np.asarray(self.least * (1 - rng.random(size)) ** (-1 / self.tail))

    def remainders(self, size: int, rng: np.random.Generator) -> FloatArray:
        # Density P(X > x) / mean: flat up to `least`, with mass least / mean, then a Pareto tail one lighter.
        flat = rng.random(size) < self.least / self.mean
        tail = (1 - rng.random(size)) ** (-1 / (self.tail - 1))
        return np.asarray(self.least * np.where(flat, rng.random(size), tail))


class Phases:
    """The on and off periods of n sources, in equilibrium at second 0; times must be requested in ascending order."""

    def __init__(self, on: Periods, off: Periods, n: int, rng: np.random.Generator) -> None:
        self._on, self._off, self._rng = on, off, rng
        #: whether each source is on before its first edge
        self.first: BoolArray = rng.random(n) < on.mean / (on.mean + off.mean)
        #: (n, k) seconds at which sources change their state, ascending in each row
        self.edges: FloatArray = np.where(self.first, on.remainders(n, rng), off.remainders(n, rng))[:, None]

    def reach(self, until: float) -> None:
        """Draw edges until the last one of each source lies after `until`."""
        while self.edges[:, -1].min() <= until:
            k = self.edges.shape[1]
            # An even total number of edges preserves the parity of the edges that forget() draws.
            lengths = self._lengths(k, k + k % 2 + _AHEAD)
            self.edges = np.hstack([self.edges, self.edges[:, -1:] + np.cumsum(lengths, axis=1)])

    def forget(self, before: float) -> None:
        """Replace edges before a time by as many new ones at the end, in pairs, so that `first` stays valid."""
        k = self.edges.shape[1]
        passed = (self.edges < before).sum(axis=1) // 2 * 2
        if passed.max() * 2 < k:
            return
        index = np.arange(k) + passed[:, None]
        kept = np.take_along_axis(self.edges, np.minimum(index, k - 1), axis=1)
        self.edges = kept + np.cumsum(np.where(index < k, 0.0, self._lengths(0, k)), axis=1)

    def _lengths(self, first: int, last: int) -> FloatArray:
        """Draw the periods that end at the edges first..last-1 of each source."""
        on = self.first[:, None] ^ (np.arange(first, last) % 2 == 1)
        lengths_on, lengths_off = self._on.lengths(on.shape, self._rng), self._off.lengths(on.shape, self._rng)
        return np.where(on, lengths_on, lengths_off)

    def state(self, seconds: FloatArray, sources: IntArray) -> tuple[BoolArray, FloatArray]:
        """Return, for each tuple of an ascending chunk, whether its source is on, and the second of the next change."""
        start, end = float(seconds[0]), float(seconds[-1])
        self.forget(start)
        self.reach(end + 1.0)
        # Concatenate the edges of all sources into one ascending sequence, each source in an interval of its own.
        span = end - start + 1.0
        lanes = np.arange(len(self.first))[:, None] * span
        flat = (lanes + np.clip(self.edges - start, 0.0, span)).ravel()
        passed = np.searchsorted(flat, sources * span + (seconds - start), side="right") - sources * self.edges.shape[1]
        return self.first[sources] ^ (passed % 2 == 1), self.edges[sources, passed]


def pieces(phases: Phases, rates: FloatArray, block: float) -> Iterator[RateSegments]:
    """Yield the rates of n on/off sources, `rates` (n,) while on and 0 while off, in blocks of `block` seconds."""
    start, on = 0.0, phases.first.copy()
    while True:
        end = start + block
        phases.reach(end)
        inside = (phases.edges > start) & (phases.edges <= end)
        source, _ = np.nonzero(inside)
        at = phases.edges[inside]
        order = np.argsort(at, kind="stable")
        toggles = np.zeros((len(at) + 1, len(on)), dtype=np.int64)
        toggles[0] = on
        toggles[np.arange(1, len(at) + 1), source[order]] = 1
        state = np.cumsum(toggles, axis=0) % 2
        yield RateSegments(np.diff(np.concatenate([[start], at[order], [end]])), state * rates)
        start, on = end, state[-1].astype(np.bool_)
        phases.forget(start)
