"""Stretches of generated streams, for tests."""

from __future__ import annotations

import numpy as np

from skypane.types import IntArray
from skypane.workloads.arrivals.sent import Fleet, Process, SentTuples
from skypane.workloads.stream import generator


def times_of(process: Process, n: int, seed: int = 1) -> IntArray:
    """The first n event times, in microseconds."""
    chunks, rows = [], 0
    for times in process.times(generator(seed, 0)):
        chunks.append(times)
        rows += len(times)
        if rows >= n:
            break
    return np.concatenate(chunks)[:n]


def sent_by(fleet: Fleet, n: int, seed: int = 1) -> SentTuples:
    """The first n tuples of a fleet."""
    chunks, rows = [], 0
    for sent in fleet.sent(generator(seed, 0)):
        chunks.append(sent)
        rows += len(sent.times)
        if rows >= n:
            break
    times, sources = (np.concatenate(column)[:n] for column in zip(*chunks, strict=True))
    return SentTuples(times, sources)


def rate_of(times: IntArray) -> float:
    """Tuples per second."""
    return len(times) / (int(times[-1]) / 1e6)
