"""The papers' streams, in the form that the simulator takes."""

from __future__ import annotations

import numpy as np

from skypane.runtime.sim.simulated_stream import SimulatedStream
from skypane.types import IntArray, Micros
from skypane.windows import Windows
from skypane.workloads import Map2, Poisson

MOST_DELAY: Micros = 400_000
"""Largest delay; delays are uniform, 200 ms on average (paper 1, section 4.3.3; paper 5, section 5.2)."""


def event_times(rate: float, dispersion: float, seconds: float, rng: np.random.Generator) -> IntArray:
    """Return ascending event times in microseconds: Poisson if `dispersion` is at most 1, else a MAP(2)."""
    until, chunks = round(seconds * 1e6), []
    for chunk in (Map2(rate, dispersion) if dispersion > 1 else Poisson(rate)).times(rng):
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
    rate: float, dispersion: float, windows: Windows, seconds: float, most_delay: Micros = MOST_DELAY, seed: int = 0
) -> SimulatedStream:
    """Return a stream of `rate` tuples per second, with the largest delay as slack."""
    rng = np.random.default_rng(seed)
    event, arrival = disordered(event_times(rate, dispersion, seconds, rng), most_delay, rng)
    return SimulatedStream.of(windows, event, arrival, most_delay)
