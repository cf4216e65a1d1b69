"""Sources that alternate between on and off: when, and who is on at a given time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from skypane.types import BoolArray, FloatArray, IntArray
from skypane.workloads.arrivals.rates import Pieces

_AHEAD: Final = 16
"""Periods drawn at a time for each source."""


class Periods(Protocol):
    """A law of period lengths, in seconds."""

    @property
    def mean(self) -> float: ...

    def lengths(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draw whole periods."""
        ...

    def remainders(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw what is left of periods that are met at a random time."""
        ...


@dataclass(frozen=True, slots=True)
class ExponentialPeriods:
    """Periods with no memory."""

    mean: float

    def lengths(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return self.mean * rng.standard_exponential(size)

    def remainders(self, size: int, rng: np.random.Generator) -> FloatArray:
        return self.lengths((size,), rng)


@dataclass(frozen=True, slots=True)
class ParetoPeriods:
    """P(X > x) = (least / x)^tail for x >= least; with 1 < tail < 2 the mean is finite and the variance is not."""

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
    """The alternation of n sources from second 0 on, met at a random time; state that is asked in ascending time."""

    def __init__(self, on: Periods, off: Periods, n: int, rng: np.random.Generator) -> None:
        self._on, self._off, self._rng = on, off, rng
        #: who is on before its first edge
        self.first: BoolArray = rng.random(n) < on.mean / (on.mean + off.mean)
        #: (n, k) seconds at which sources change, ascending in each row
        self.edges: FloatArray = np.where(self.first, on.remainders(n, rng), off.remainders(n, rng))[:, None]

    def reach(self, until: float) -> None:
        """Draw edges until the last one of each source lies after `until`."""
        while self.edges[:, -1].min() <= until:
            k = self.edges.shape[1]
            # An even number of edges in all keeps the parity of those that forget() draws.
            lengths = self._lengths(k, k + k % 2 + _AHEAD)
            self.edges = np.hstack([self.edges, self.edges[:, -1:] + np.cumsum(lengths, axis=1)])

    def forget(self, before: float) -> None:
        """Drop edges that lie before, in pairs, so that `first` stays true, and draw as many new ones in their place."""
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
        """Return, for each tuple of an ascending chunk, whether its source is on, and the second when that changes."""
        start, end = float(seconds[0]), float(seconds[-1])
        self.forget(start)
        self.reach(end + 1.0)
        # All sources' edges as one ascending sequence: each source has an interval of its own.
        span = end - start + 1.0
        lanes = np.arange(len(self.first))[:, None] * span
        flat = (lanes + np.clip(self.edges - start, 0.0, span)).ravel()
        passed = np.searchsorted(flat, sources * span + (seconds - start), side="right") - sources * self.edges.shape[1]
        return self.first[sources] ^ (passed % 2 == 1), self.edges[sources, passed]


def pieces(phases: Phases, rates: FloatArray, block: float) -> Iterator[Pieces]:
    """Yield the rates of on/off sources, `rates` (n,) while on, 0 while off, `block` seconds at a time."""
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
        yield Pieces(np.diff(np.concatenate([[start], at[order], [end]])), state * rates)
        start, on = end, state[-1].astype(np.bool_)
        phases.forget(start)
