"""The four questions of paper 3's Algorithm 1, and the strategies that answer them: PAR, ARI, ARD, DRF, DRF-M.

                what a stream counts     moved first
PAR             average of last period   all streams, every period, into empty readers
ARI             the same                 lowest average
ARD             the same                 highest average
DRF             forecast X(t+1)          highest X(t+k) - X(t+1)
DRF-M           expectation X^m(t+k),    highest X^m(t+k) - X(t+1),
                else as DRF              else as DRF
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import ClassVar

from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Stream:
    """What is known of one stream before the next period; rates in rows per second.

    average    of the last period
    soon       forecast of the next period, X(t+1)
    later      forecast of the k-th, X(t+k)
    expected   what its meta-data lets expect, X^m(t+k); None if it says nothing
    """

    name: str
    average: float
    soon: float
    later: float
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """A split node of the paper: the streams that it reads, and for how many seconds a row waits at it."""

    number: int
    streams: tuple[Stream, ...]
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a reader bears.

    capacity   C, rows per second
    latency    L, the bound on a row's waiting, in seconds
    accepts    share of C below which a reader takes more streams
    most       readers that there may be; None: as many as it takes
    """

    capacity: float
    latency: float = 5.0
    accepts: float = 1.0
    most: int | None = None

    def __post_init__(self) -> None:
        if not self.capacity > 0:
            raise ConfigError(
                f"capacity is what a reader reads in a second, need more than 0 rows, got {self.capacity}"
            )
        if not self.latency > 0:
            raise ConfigError(f"latency must be longer than nothing, got {self.latency} s")
        if not 0 < self.accepts <= 1:
            raise ConfigError(f"accepts is a share of the capacity, need 0 < accepts <= 1, got {self.accepts}")
        if self.most is not None and self.most < 1:
            raise ConfigError(f"need at least one reader, got most={self.most}")


class Strategy(ABC):
    """The questions of Algorithm 1, under the paper's names."""

    name: ClassVar[str]

    @abstractmethod
    def counts(self, stream: Stream) -> float:
        """Return the rate that a stream is taken to have: what is summed up and packed."""

    @abstractmethod
    def urgency(self, stream: Stream) -> float:
        """Return a number: of an overloaded reader's streams, that with the highest moves first."""

    def load(self, streams: Iterable[Stream]) -> float:
        """Return the rate that streams are taken to have together."""
        return fsum(map(self.counts, streams))

    def is_overloaded(self, reader: Reader, limits: Limits) -> bool:
        """Whether rows wait for longer than the bound, or will: the streams count for more than the capacity."""
        return reader.latency > limits.latency or self.load(reader.streams) > limits.capacity

    def pick_streams_to_move(self, reader: Reader, limits: Limits) -> tuple[Stream, ...]:
        """Return the streams to move away until the others fit; the last one stays, whatever it brings."""
        order = sorted(reader.streams, key=lambda stream: (-self.urgency(stream), stream.name))
        at = next(
            at for at in range(len(order) + 1) if self.load(order[at:]) <= limits.capacity or at + 1 == len(order)
        )
        return tuple(order[:at])

    def accepts_new_stream(self, reader: Reader, limits: Limits) -> bool:
        """Whether a reader has room at all."""
        return self.load(reader.streams) < limits.accepts * limits.capacity

    def placement_order(self, streams: Iterable[Stream]) -> list[Stream]:
        """Return streams in the order in which they are placed: the largest first."""
        return sorted(streams, key=lambda stream: (-self.counts(stream), stream.name))


class _ByAverage(Strategy):
    """Looks at the period that has passed."""

    def counts(self, stream: Stream) -> float:
        return stream.average


@dataclass(frozen=True)
class PlainAverageRate(_ByAverage):
    """PAR: packs all streams anew in each period, whatever read them."""

    name: ClassVar[str] = "PAR"

    def urgency(self, stream: Stream) -> float:
        return stream.average

    def is_overloaded(self, reader: Reader, limits: Limits) -> bool:  # noqa: ARG002
        return True

    def pick_streams_to_move(self, reader: Reader, limits: Limits) -> tuple[Stream, ...]:  # noqa: ARG002
        return reader.streams


@dataclass(frozen=True)
class AverageRateIncreasing(_ByAverage):
    """ARI: moves the slowest streams first."""

    name: ClassVar[str] = "ARI"

    def urgency(self, stream: Stream) -> float:
        return -stream.average


@dataclass(frozen=True)
class AverageRateDecreasing(_ByAverage):
    """ARD: moves the fastest streams first."""

    name: ClassVar[str] = "ARD"

    def urgency(self, stream: Stream) -> float:
        return stream.average


@dataclass(frozen=True)
class DeltaRateForecast(Strategy):
    """DRF: moves first what is forecast to grow most."""

    name: ClassVar[str] = "DRF"

    def counts(self, stream: Stream) -> float:
        return stream.soon

    def urgency(self, stream: Stream) -> float:
        return stream.later - stream.soon


@dataclass(frozen=True)
class DeltaRateForecastWithMetaData(DeltaRateForecast):
    """DRF-M: the same, and what meta-data lets expect overrides the forecast."""

    name: ClassVar[str] = "DRF-M"

    def counts(self, stream: Stream) -> float:
        return stream.soon if stream.expected is None else stream.expected

    def urgency(self, stream: Stream) -> float:
        return (stream.later if stream.expected is None else stream.expected) - stream.soon


STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        PlainAverageRate(),
        AverageRateIncreasing(),
        AverageRateDecreasing(),
        DeltaRateForecast(),
        DeltaRateForecastWithMetaData(),
    )
}
