"""The papers' streams, in the form that the simulator takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.types import IntArray, Micros
from skypane.windows import Windows
from skypane.workloads import Map2, Poisson

MOST_DELAY: Micros = 400_000
"""Largest delay; delays are uniform, 200 ms on average (paper 1, section 4.3.3; paper 5, section 5.2)."""

Bursts: TypeAlias = Callable[[float, float], Map2]
"""(tuples per second, index of dispersion) -> MAP(2); the index and the mean leave two of its parameters open."""


def as_published(rate: float, dispersion: float) -> Map2:
    """Return a MAP(2) with the shape of paper 1's published generator: 16 times the rate and 80 % of the tuples in bursts.

    The generator doubles F until gaps of F and 1/F times the mean have a lag-1 autocorrelation of 0.4 or more. With F/(1 + F)
    of the tuples in bursts it is (1 - 1 / (2 F - 3 + 2 / F)) / 2, which needs F >= 3.7, so F is 4 and the ratio F^2.
    """
    return Map2(rate, dispersion, ratio=16.0, burst_share=0.8)


def event_times(
    rate: float, dispersion: float, seconds: float, rng: np.random.Generator, bursts: Bursts = Map2
) -> IntArray:
    """Return ascending event times in microseconds: Poisson if `dispersion` is at most 1, else a MAP(2)."""
    until, chunks = round(seconds * 1e6), []
    for chunk in (bursts(rate, dispersion) if dispersion > 1 else Poisson(rate)).times(rng):
        chunks.append(chunk)
        if chunk[-1] >= until:
            break
    event = np.concatenate(chunks)
    return event[event < until]


def disordered(event: IntArray, most_delay: Micros, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return event times and arrival times in the order of arrival, with uniform delays up to `most_delay`."""
    arrival = event + rng.integers(0, most_delay + 1, len(event))
    order = np.argsort(arrival, kind="stable")
    return event[order], arrival[order]


def in_order(event: IntArray, arrival: IntArray, slack: Micros) -> tuple[IntArray, IntArray]:
    """Return ascending event times, and when a K-slack buffer before the query releases each: once tmax - K reaches it.

    Tuples that are in the buffer when the stream ends are released with the last arrival.
    """
    ordered = np.sort(event, kind="stable")
    newest = np.maximum.accumulate(event)
    by = np.minimum(np.searchsorted(newest, ordered + slack), len(arrival) - 1)
    return ordered, arrival[by]


def stream(
    rate: float,
    dispersion: float,
    windows: Windows,
    seconds: float,
    most_delay: Micros = MOST_DELAY,
    seed: int = 0,
    bursts: Bursts = Map2,
) -> SimulatedStream:
    """Return a stream of `rate` tuples per second, with the largest delay as slack."""
    rng = np.random.default_rng(seed)
    event, arrival = disordered(event_times(rate, dispersion, seconds, rng, bursts), most_delay, rng)
    return SimulatedStream.of(windows, event, arrival, most_delay)
