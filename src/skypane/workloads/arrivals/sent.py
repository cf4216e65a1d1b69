"""The interfaces of arrival generators, which yield the event time and the source of each tuple."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from skypane.types import FloatArray, IntArray, Micros
from skypane.workloads.argument_checks import SECOND

CHUNK: Final = 1 << 14
"""Tuples generated at a time; their columns fit the caches of one core."""


class SentTuples(NamedTuple):
    """Tuples in the order of their event times: (n,) microseconds since the start, (n,) source numbers from 0."""

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
    """Event times of several sources, merged into one stream."""

    @property
    def streams(self) -> int:
        """The number of sources; they are numbered from 0."""
        ...

    def sent(self, rng: np.random.Generator) -> Iterator[SentTuples]:
        """Yield chunks of tuples in the order of their event times, without end."""
        ...


def whole_micros(seconds: FloatArray) -> IntArray:
    """Return seconds since the start as whole microseconds."""
    return np.rint(seconds * SECOND).astype(np.int64)


def until(sent: Iterator[SentTuples], end: Micros) -> Iterator[SentTuples]:
    """Yield the tuples before `end`, which is in microseconds since the start."""
    for times, sources in sent:
        n = int(np.searchsorted(times, end))
        yield SentTuples(times[:n], sources[:n])
        if n < len(times):
            return


def at_most(sent: Iterator[SentTuples], rows: int) -> Iterator[SentTuples]:
    """Yield the first `rows` tuples, drawing only as many chunks as needed."""
    left = rows
    while left > 0:
        chunk = next(sent, None)
        if chunk is None:
            return
        yield SentTuples(chunk.times[:left], chunk.sources[:left])
        left -= len(chunk.times)
