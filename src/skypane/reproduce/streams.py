"""The papers' streams, made ready for the simulator."""

from __future__ import annotations

import numpy as np

from skypane.runtime.sim.stream import Stream
from skypane.types import IntArray, Micros
from skypane.windows import Windows
from skypane.workloads import Map2, Poisson

MOST_DELAY: Micros = 400_000
"""Delays are uniform up to it: 200 ms on average (paper 1, section 4.3.3; paper 5, section 5.2)."""


def event_times(rate: float, dispersion: float, seconds: float, rng: np.random.Generator) -> IntArray:
    """Return ascending microseconds: a Poisson stream where the index of dispersion is 1, else a MAP(2)."""
    until, chunks = round(seconds * 1e6), []
    for chunk in (Map2(rate, dispersion) if dispersion > 1 else Poisson(rate)).times(rng):
        chunks.append(chunk)
        if chunk[-1] >= until:
            break
    event = np.concatenate(chunks)
    return event[event < until]


def disordered(event: IntArray, most_delay: Micros, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return event times and arrival times, in the order of arrival: delays are uniform up to `most_delay`."""
    arrival = event + rng.integers(0, most_delay + 1, len(event))
    order = np.argsort(arrival, kind="stable")
    return event[order], arrival[order]


def in_order(event: IntArray, arrival: IntArray, slack: Micros) -> tuple[IntArray, IntArray]:
    """Return event times ascending, and when a K-slack buffer before the query lets each go: when tmax - K has come to it.

    What is still in the buffer when the stream ends goes with its last arrival.
    """
    ordered = np.sort(event, kind="stable")
    newest = np.maximum.accumulate(event)
    by = np.minimum(np.searchsorted(newest, ordered + slack), len(arrival) - 1)
    return ordered, arrival[by]


def stream(
    rate: float, dispersion: float, windows: Windows, seconds: float, most_delay: Micros = MOST_DELAY, seed: int = 0
) -> Stream:
    """Return a stream of `rate` tuples a second whose panes wait for the largest delay."""
    rng = np.random.default_rng(seed)
    event, arrival = disordered(event_times(rate, dispersion, seconds, rng), most_delay, rng)
    return Stream.of(windows, event, arrival, most_delay)
