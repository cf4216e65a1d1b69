"""Who sends: shares of one stream's tuples, and sources that join, leave and stall."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skypane.types import ConfigError, Duration, IntArray
from skypane.workloads.arrivals.phases import ExponentialPeriods, Phases
from skypane.workloads.arrivals.sent import Process, Sent
from skypane.workloads.checks import SECOND, at_least, seconds
from skypane.workloads.content.keys import zipf_shares


@dataclass(frozen=True, slots=True)
class Shared:
    """A process whose tuples come from `streams` sources, each tuple's drawn alone.

    Source i has a share proportional to 1 / (i + 1)^exponent: 0 is equal shares. Of a Poisson process this makes
    independent Poisson sources.
    """

    process: Process
    streams: int = 1
    exponent: float = 0.0

    def __post_init__(self) -> None:
        at_least("streams", 1, self.streams)
        if not 0 <= self.exponent < np.inf:
            raise ConfigError(f"need 0 <= exponent < infinity, got exponent={self.exponent}")

    def sent(self, rng: np.random.Generator) -> Iterator[Sent]:
        """Yield chunks of tuples in the order of their event times, without end."""
        ends = np.cumsum(zipf_shares(self.streams, self.exponent))
        for times in self.process.times(rng):
            yield Sent(times, _draw(ends, len(times), rng))


def _draw(ends: np.ndarray[tuple[int], np.dtype[np.float64]], n: int, rng: np.random.Generator) -> IntArray:
    if len(ends) == 1:
        return np.zeros(n, dtype=np.int64)
    return np.minimum(np.searchsorted(ends, rng.random(n), side="right"), len(ends) - 1)


@dataclass(frozen=True, slots=True)
class Presence:
    """When sources are there: what an absent or stalled source would have sent is never sent.

    join_within: sources join at times uniform in this; none: all are there from the start.
    stay: mean time from joining until a source leaves for good, exponential; none: it never leaves.
    stall_every, stall_for: mean time between stalls, and of a stall, both exponential; none: no stalls.

    A stall is silence. For a source that goes on measuring and delivers later, see delays.HeldBack.
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

    def thinned(self, sent: Iterator[Sent], streams: int, rng: np.random.Generator) -> Iterator[Sent]:
        """Yield the tuples of those of the `streams` sources that are there when they send.

        Ends when all sources have left for good.
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
            yield Sent(times[there], sources[there])

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
