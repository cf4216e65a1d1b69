"""What arrival generators yield: who sent a tuple, and when; and the two kinds of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from skypane.types import FloatArray, IntArray, Micros
from skypane.workloads.checks import SECOND

CHUNK: Final = 1 << 14
"""Tuples made at a time: their columns stay in the caches of one core."""


class Sent(NamedTuple):
    """Some tuples in the order of their event times: (n,) microseconds since the start, (n,) source numbers from 0."""

    times: IntArray
    sources: IntArray


@runtime_checkable
class Process(Protocol):
    """One stream of event times."""

    def times(self, rng: np.random.Generator) -> Iterator[IntArray]:
        """Yield chunks of ascending microseconds since the start, without end."""
        ...


@runtime_checkable
class Fleet(Protocol):
    """Streams of several sources, merged."""

    @property
    def streams(self) -> int:
        """How many sources: they are numbered from 0."""
        ...

    def sent(self, rng: np.random.Generator) -> Iterator[Sent]:
        """Yield chunks of tuples in the order of their event times, without end."""
        ...


def whole_micros(seconds: FloatArray) -> IntArray:
    """Return seconds since the start as whole microseconds."""
    return np.rint(seconds * SECOND).astype(np.int64)


def until(sent: Iterator[Sent], end: Micros) -> Iterator[Sent]:
    """Yield the tuples before `end`, in microseconds since the start."""
    for times, sources in sent:
        n = int(np.searchsorted(times, end))
        yield Sent(times[:n], sources[:n])
        if n < len(times):
            return


def at_most(sent: Iterator[Sent], rows: int) -> Iterator[Sent]:
    """Yield the first `rows` tuples; draw no chunk more than that takes."""
    left = rows
    while left > 0:
        chunk = next(sent, None)
        if chunk is None:
            return
        yield Sent(chunk.times[:left], chunk.sources[:left])
        left -= len(chunk.times)
