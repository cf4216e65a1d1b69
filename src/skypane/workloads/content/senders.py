"""Senders of tuples: sources that share one stream, and sources that join, leave and stall."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skypane.types import ConfigError, Duration, IntArray
from skypane.workloads.argument_checks import SECOND, at_least, seconds
from skypane.workloads.arrivals.phases import ExponentialPeriods, Phases
from skypane.workloads.arrivals.sent import Process, SentTuples
from skypane.workloads.content.keys import zipf_shares


@dataclass(frozen=True, slots=True)
class Shared:
    """A process whose tuples come from `streams` sources; the source of each tuple is drawn independently.

    Source i has a share proportional to 1 / (i + 1)^exponent; exponent 0 means equal shares. A Poisson process is split
    into independent Poisson sources.
    """

    process: Process
    streams: int = 1
    exponent: float = 0.0

    def __post_init__(self) -> None:
        at_least("streams", 1, self.streams)
        if not 0 <= self.exponent < np.inf:
            raise ConfigError(f"need 0 <= exponent < infinity, got exponent={self.exponent}")

    def sent(self, rng: np.random.Generator) -> Iterator[SentTuples]:
        """Yield chunks of tuples in the order of their event times, without end."""
        ends = np.cumsum(zipf_shares(self.streams, self.exponent))
        for times in self.process.times(rng):
            yield SentTuples(times, _draw(ends, len(times), rng))


def _draw(ends: np.ndarray[tuple[int], np.dtype[np.float64]], n: int, rng: np.random.Generator) -> IntArray:
    if len(ends) == 1:
        return np.zeros(n, dtype=np.int64)
    return np.minimum(np.searchsorted(ends, rng.random(n), side="right"), len(ends) - 1)


@dataclass(frozen=True, slots=True)
class Presence:
    """The times in which sources are present; tuples of an absent or stalled source are never sent.

    join_within: sources join at times uniform in this duration; None: all are present from the start.
    stay: mean time from joining until a source leaves for good, exponential; None: it never leaves.
    stall_every, stall_for: mean time between stalls, and mean length of a stall, both exponential; None: no stalls.

    A stalled source sends nothing. For a source that goes on measuring and delivers later, see held.HeldBack.
    """

    join_within: Duration | None = None
    stay: Duration | None = None
    stall_every: Duration | None = None
    stall_for: Duration | None = None

    def __post_init__(self) -> None:
        for name in ("join_within", "stay", "stall_every", "stall_for"):
            if getattr(self, name) is not None:
                seconds(name, getattr(self, name))
        if (self.stall_every is None) != (self.stall_for is None):
            raise ConfigError(
                f"need both stall_every and stall_for, or neither, got stall_every={self.stall_every!r}, "
                f"stall_for={self.stall_for!r}"
            )

    def thinned(self, sent: Iterator[SentTuples], streams: int, rng: np.random.Generator) -> Iterator[SentTuples]:
        """Yield the tuples whose source, one of `streams`, is present at their time.

        The iterator ends when all sources have left for good.
        """
        joined, left = self._life(streams, rng)
        stalls = self._stalls(streams, rng)
        for times, sources in sent:
            if not len(times):
                continue
            if times[0] >= left.max():
                return
            there = (times >= joined[sources]) & (times < left[sources])
            if stalls is not None:
                there &= stalls.state(times / SECOND, sources)[0]
            yield SentTuples(times[there], sources[there])

    def _life(self, streams: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the half-open [joined, left) of each source in microseconds since the start."""
        joined = np.zeros(streams, dtype=np.int64)
        if self.join_within is not None:
            joined = (rng.random(streams) * seconds("join_within", self.join_within) * SECOND).astype(np.int64)
        if self.stay is None:
            return joined, np.full(streams, np.iinfo(np.int64).max)
        stays = rng.standard_exponential(streams) * seconds("stay", self.stay) * SECOND
        return joined, joined + stays.astype(np.int64)

    def _stalls(self, streams: int, rng: np.random.Generator) -> Phases | None:
        if self.stall_every is None or self.stall_for is None:
            return None
        well = ExponentialPeriods(seconds("stall_every", self.stall_every))
        stalled = ExponentialPeriods(seconds("stall_for", self.stall_for))
        return Phases(well, stalled, streams, rng)
