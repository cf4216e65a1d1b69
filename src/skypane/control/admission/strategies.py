"""The four decisions of paper 3's Algorithm 1, and the strategies that make them: PAR, ARI, ARD, DRF, DRF-M.

                rate of a stream         moved first
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
class StreamLoad:
    """Load of one stream before the next period; rates in rows per second.

    average    rate of the last period
    soon       forecast for the next period, X(t+1)
    later      forecast for the k-th period, X(t+k)
    expected   rate expected from its meta-data, X^m(t+k); None if they do not determine one
    """

    name: str
    average: float
    soon: float
    later: float
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """A split node of the paper: the streams that it reads, and the waiting time of a row at it, in seconds."""

    number: int
    streams: tuple[StreamLoad, ...]
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class ReaderCapacity:
    """Limits of a reader.

    capacity     C, rows per second
    latency      L, the bound on the waiting time of a row, in seconds
    accepts      share of C below which a reader takes more streams
    max_readers  largest number of readers; None: unlimited
    """

    capacity: float
    latency: float = 5.0
    accepts: float = 1.0
    max_readers: int | None = None

    def __post_init__(self) -> None:
        if not self.capacity > 0:
            raise ConfigError(f"capacity is in rows per second of a reader, need more than 0, got {self.capacity}")
        if not self.latency > 0:
            raise ConfigError(f"latency must be longer than 0, got {self.latency} s")
        if not 0 < self.accepts <= 1:
            raise ConfigError(f"accepts is a share of the capacity, need 0 < accepts <= 1, got {self.accepts}")
        if self.max_readers is not None and self.max_readers < 1:
            raise ConfigError(f"max_readers must be at least 1, got {self.max_readers}")


class Strategy(ABC):
    """The decisions of Algorithm 1, with the paper's names."""

    name: ClassVar[str]

    @abstractmethod
    def counts(self, stream: StreamLoad) -> float:
        """Return the rate of a stream that is used for sums and packing."""

    @abstractmethod
    def urgency(self, stream: StreamLoad) -> float:
        """Return the urgency of a stream; an overloaded reader's streams move in descending order of it."""

    def load(self, streams: Iterable[StreamLoad]) -> float:
        """Return the sum of the rates of streams, as counts() returns them."""
        return fsum(map(self.counts, streams))

    def is_overloaded(self, reader: Reader, limits: ReaderCapacity) -> bool:
        """Return whether rows wait longer than the bound, or will, since the load exceeds the capacity."""
        return reader.latency > limits.latency or self.load(reader.streams) > limits.capacity

    def pick_streams_to_move(self, reader: Reader, limits: ReaderCapacity) -> tuple[StreamLoad, ...]:
        """Return the streams to move away until the others fit; the last one stays, whatever its rate."""
        order = sorted(reader.streams, key=lambda stream: (-self.urgency(stream), stream.name))
        at = next(
            at for at in range(len(order) + 1) if self.load(order[at:]) <= limits.capacity or at + 1 == len(order)
        )
        return tuple(order[:at])

    def accepts_new_stream(self, reader: Reader, limits: ReaderCapacity) -> bool:
        """Return whether a reader has room for more streams."""
        return self.load(reader.streams) < limits.accepts * limits.capacity

    def placement_order(self, streams: Iterable[StreamLoad]) -> list[StreamLoad]:
        """Return streams in the order of their placement, largest first."""
        return sorted(streams, key=lambda stream: (-self.counts(stream), stream.name))


class _ByAverage(Strategy):
    """Strategies that use the average rate of the last period."""

    def counts(self, stream: StreamLoad) -> float:
        return stream.average


@dataclass(frozen=True)
class PlainAverageRate(_ByAverage):
    """PAR: packs all streams again in each period, regardless of their current readers."""

    name: ClassVar[str] = "PAR"

    def urgency(self, stream: StreamLoad) -> float:
        return stream.average

    def is_overloaded(self, reader: Reader, limits: ReaderCapacity) -> bool:  # noqa: ARG002
        return True

    def pick_streams_to_move(self, reader: Reader, limits: ReaderCapacity) -> tuple[StreamLoad, ...]:  # noqa: ARG002
        return reader.streams


@dataclass(frozen=True)
class AverageRateIncreasing(_ByAverage):
    """ARI: moves the slowest streams first."""

    name: ClassVar[str] = "ARI"

    def urgency(self, stream: StreamLoad) -> float:
        return -stream.average


@dataclass(frozen=True)
class AverageRateDecreasing(_ByAverage):
    """ARD: moves the fastest streams first."""

    name: ClassVar[str] = "ARD"

    def urgency(self, stream: StreamLoad) -> float:
        return stream.average


@dataclass(frozen=True)
class DeltaRateForecast(Strategy):
    """DRF: moves the streams with the largest forecast growth first."""

    name: ClassVar[str] = "DRF"

    def counts(self, stream: StreamLoad) -> float:
        return stream.soon

    def urgency(self, stream: StreamLoad) -> float:
        return stream.later - stream.soon


@dataclass(frozen=True)
class DeltaRateForecastWithMetaData(DeltaRateForecast):
    """DRF-M: as DRF, but the rate expected from meta-data overrides the forecast."""

    name: ClassVar[str] = "DRF-M"

    def counts(self, stream: StreamLoad) -> float:
        return stream.soon if stream.expected is None else stream.expected

    def urgency(self, stream: StreamLoad) -> float:
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
