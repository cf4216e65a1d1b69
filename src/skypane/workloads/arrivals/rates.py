"""Arrivals with piecewise constant rates, of one or many sources.

The integral of a rate over time is the expected number of tuples; its values are called units here. On the axis of
units every process has rate 1, so gaps of mean 1 are drawn there and mapped back to seconds by interpolation, which is
exact for piecewise constant rates:

    units    |--x-x---x--x-x-|---x-|              exponential gaps (Poisson) or whole numbers (evenly)
    seconds  |-x-x--x-x-x|--------------x---|     fast piece, slow piece
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from skypane.types import FloatArray, IntArray
from skypane.workloads.arrivals.sent import CHUNK, SentTuples, whole_micros


class RateSegments(NamedTuple):
    """Consecutive pieces of time: (k,) lengths in seconds, (k, n) tuples per second of each of n sources."""

    lengths: FloatArray
    rates: FloatArray


class _Knots:
    """The ends of pieces in seconds and in units of each source, as far as they are still needed."""

    def __init__(self, pieces: Iterator[RateSegments]) -> None:
        self._pieces = pieces
        self.seconds: FloatArray = np.zeros(1)
        self.units: FloatArray = np.zeros((1, 1))

    @property
    def total(self) -> FloatArray:
        return np.asarray(self.units.sum(axis=1))

    def reach(self, units: float) -> None:
        """Read pieces until they hold `units` units in total."""
        seconds, sums = [self.seconds], [self.units]
        while sums[-1][-1].sum() < units:
            lengths, rates = next(self._pieces)
            seconds.append(seconds[-1][-1] + np.cumsum(lengths))
            sums.append(sums[-1][-1] + np.cumsum(lengths[:, None] * rates, axis=0))
        # The number of sources is unknown until the first piece is read: the initial single column is broadcast to it.
        sums[0] = np.broadcast_to(sums[0], (len(sums[0]), sums[-1].shape[1]))
        self.seconds, self.units = np.concatenate(seconds), np.concatenate(sums)

    def forget(self, units: float) -> None:
        """Drop the pieces that end before `units`."""
        keep = max(0, int(np.searchsorted(self.total, units)) - 1)
        self.seconds, self.units = self.seconds[keep:], self.units[keep:]


def poisson(pieces: Iterator[RateSegments], rng: np.random.Generator) -> Iterator[SentTuples]:
    """Yield tuples of independent Poisson sources with the given rates, without end."""
    knots, now = _Knots(pieces), 0.0
    while True:
        units = now + np.cumsum(rng.standard_exponential(CHUNK))
        now = float(units[-1])
        knots.reach(now)
        times = whole_micros(np.interp(units, knots.total, knots.seconds))
        yield SentTuples(times, _senders(units, knots, rng))
        knots.forget(now)


def _senders(units: FloatArray, knots: _Knots, rng: np.random.Generator) -> IntArray:
    """Return the source of the tuple at each value of `units`, drawn within a piece in proportion to the rates."""
    n = knots.units.shape[1]
    if n == 1:
        return np.zeros(len(units), dtype=np.int64)
    share = np.cumsum(np.diff(knots.units, axis=0), axis=1)
    whole = share[:, -1:]
    share = np.divide(share, whole, out=np.ones_like(share), where=whole > 0)
    pieces = np.arange(len(share))
    piece = np.clip(np.searchsorted(knots.total, units, side="right") - 1, 0, len(share) - 1)
    # Search one ascending sequence in which each piece has the interval [piece, piece + 1).
    at = np.searchsorted((pieces[:, None] + share).ravel(), piece + rng.random(len(units)), side="right")
    return np.asarray(np.minimum(at - piece * n, n - 1))


def evenly(pieces: Iterator[RateSegments], rng: np.random.Generator) -> Iterator[SentTuples]:
    """Yield tuples that each source sends at equal distances in units, with its own phase, without end."""
    knots, now = _Knots(pieces), 0.0
    knots.reach(1.0)
    phases: FloatArray = rng.random((knots.units.shape[1],))
    done = np.zeros(len(phases), dtype=np.int64)
    while True:
        now += CHUNK
        knots.reach(now)
        until = float(np.interp(now, knots.total, knots.seconds))
        sent = [_ticks(knots, i, phases[i], done, until) for i in range(len(phases))]
        seconds = np.concatenate(sent)
        order = np.argsort(seconds, kind="stable")
        yield SentTuples(whole_micros(seconds[order]), np.repeat(np.arange(len(sent)), [len(s) for s in sent])[order])
        knots.forget(now)


def _ticks(knots: _Knots, source: int, phase: float, done: IntArray, until: float) -> FloatArray:
    """Return the seconds at which one source sends its next tuples, up to `until`, and count them in `done`."""
    units = knots.units[:, source]
    first, last = done[source], max(done[source], int(np.interp(until, knots.seconds, units) - phase + 1))
    done[source] = last
    return np.asarray(np.interp(np.arange(first, last) + phase, units, knots.seconds))
