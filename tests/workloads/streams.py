"""Stretches of generated streams, for tests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from skypane.types import IntArray
from skypane.workloads.arrivals.sent import Fleet, Process, SentTuples, at_most
from skypane.workloads.stream import generator


def united(parts: Iterable[SentTuples]) -> SentTuples:
    """The tuples of all parts."""
    return SentTuples(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def sent_by(fleet: Fleet, n: int, seed: int = 1) -> SentTuples:
    """The first n tuples of a fleet."""
    return united(at_most(fleet.sent(generator(seed, 0)), n))


def times_of(process: Process, n: int, seed: int = 1) -> IntArray:
    """The first n event times, in microseconds."""
    parts = (SentTuples(times, np.zeros_like(times)) for times in process.times(generator(seed, 0)))
    return united(at_most(parts, n)).times


def rate_of(times: IntArray) -> float:
    """Tuples per second."""
    return len(times) / (int(times[-1]) / 1e6)
