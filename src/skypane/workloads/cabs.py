"""Synthetic cabs of a city that report their positions and speeds (paper 3, section 1.1).

    wait for a fare -> drive to the next place, street by street -> wait ...

Each hot place attracts many cabs around one hour of the day: a queue grows on the streets that lead to it, and
dissolves again. A cab that drives there travels at speed up to the end of the queue, and crawls the rest of the way.
The ends of the queues are known (`HotPlace.queue`), so that the answers of a query can be checked against them. The
city is fictitious; its coordinates are those of San Francisco.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from skypane.types import BoolArray, Duration, FloatArray, IntArray, Micros
from skypane.workloads.argument_checks import SECOND, at_least, seconds
from skypane.workloads.arrivals.sent import CHUNK
from skypane.workloads.disorder.delays import ExponentialDelay
from skypane.workloads.disorder.held import HeldBack
from skypane.workloads.stream import START, TIMESTAMP, Stream, generator

_MOVES, _DELAYS = range(2)

WIDTH, HEIGHT = 16.0, 12.0
"""Size of the city, in km, east and north of its corner."""
CORNER: Final = (-122.52, 37.70)
"""South-western corner of the city: longitude and latitude, in degrees."""
DEGREE: Final = (87.9, 111.2)
"""Kilometres per degree of longitude and of latitude at the city."""
BLOCK: Final = 0.25
"""Kilometres from one street to the next; the first street is half as far from the corner."""
CRAWL: Final = (2.0, 9.0)
"""Speeds in a queue, km/h; uniform."""
FREE: Final = (24.0, 60.0)
"""Lowest and highest speed outside a queue, km/h."""


class HotPlace(NamedTuple):
    """A place that attracts cabs, most of them around its `hour` of the day."""

    name: str
    #: km east and north of the corner
    east: float
    north: float
    hour: float
    #: hours before and after `hour` in which there is a queue
    around: float
    #: length of the longest queue, in km
    longest: float
    #: attraction for cabs, relative to other places
    draw: float

    def rush(self, hour: float) -> float:
        """Return the intensity of the rush at an hour of the day, 0 to 1."""
        return max(0.0, 1.0 - abs(hour - self.hour) / self.around)

    def queue(self, hour: float) -> float:
        """Return the length of the queue on each street that leads to the place, in km."""
        return self.longest * self.rush(hour)


HOT: Final = (
    HotPlace("Station", 7.375, 7.125, 8.0, 1.5, 2.5, 1.0),
    HotPlace("Airport", 13.375, 2.625, 7.0, 1.25, 3.0, 0.8),
    HotPlace("Ferry", 10.375, 9.875, 8.75, 1.0, 1.5, 0.6),
    HotPlace("Fair", 2.875, 3.375, 9.5, 1.25, 2.0, 0.8),
)


@dataclass(frozen=True, slots=True)
class Cabs(Stream):
    """Reports of `cabs` cabs, one per cab every `every`; a cab that waits at a rank sends only every fourth.

    delay       mean time until a report arrives, exponential
    dead_every  mean time until a cab enters a place without network; reports from there arrive when it has left
    dead_for    mean time that it stays there
    rows, length, start: as in Stream; second 0 is six in the morning
    """

    cabs: int = 600
    every: Duration = "15 seconds"
    delay: Duration = "2 seconds"
    dead_every: Duration = "20 minutes"
    dead_for: Duration = "40 seconds"
    seed: int = 0
    rows: int | None = None
    length: Duration | None = None
    start: Micros = START + 6 * 3600 * SECOND

    def __post_init__(self) -> None:
        self.check_limits()
        at_least("cabs", 1, self.cabs)
        seconds("every", self.every)
        self._delays()

    @property
    def schema(self) -> pa.Schema:
        """Columns: time, arrival, cab, report ("traffic"; at a rank "waiting"), longitude, latitude, speed (km/h)."""
        kinds = {"time": TIMESTAMP, "arrival": TIMESTAMP, "cab": pa.int64(), "report": pa.string()}
        return pa.schema({**kinds, "longitude": pa.float64(), "latitude": pa.float64(), "speed": pa.float64()})

    def by_event(self) -> Iterator[pa.RecordBatch]:
        """Yield the reports ascending in event time."""
        return self.within(self._endless())

    def _delays(self) -> HeldBack:
        return HeldBack(self.dead_every, self.dead_for, ExponentialDelay(self.delay))

    def _endless(self) -> Iterator[pa.RecordBatch]:
        rng = generator(self.seed, _MOVES)
        delays = self._delays().start(self.cabs, generator(self.seed, _DELAYS))
        tick = seconds("every", self.every)
        # Cab i reports at its own moment of each tick, and moments ascend with i, so reports of a tick need no sorting.
        moments = np.sort(np.rint(rng.random(self.cabs) * tick * SECOND).astype(np.int64))
        traffic = _Traffic(self.cabs, rng)
        parts: list[tuple[IntArray, _Reports]] = []
        number = 0
        while True:
            at = number * tick
            reports = traffic.tick(self._hour(at), tick, number)
            parts.append((moments[reports.cabs] + round(at * SECOND), reports))
            number += 1
            if sum(len(times) for times, _ in parts) >= CHUNK:
                times = np.concatenate([times for times, _ in parts])
                sent = _Reports(*map(np.concatenate, zip(*(part for _, part in parts), strict=True)))
                yield self._batch(times, times + delays(times, sent.cabs), sent)
                parts = []

    def _hour(self, at: float) -> float:
        """Return the hour of the day, `at` seconds after the start."""
        return (self.start / SECOND + at) / 3600 % 24

    def _batch(self, times: IntArray, arrivals: IntArray, sent: _Reports) -> pa.RecordBatch:
        stamps = [pa.array(column + self.start).view(TIMESTAMP) for column in (times, arrivals)]
        kinds = pa.array(["waiting", "traffic"]).take(pa.array(sent.driving.astype(np.int64)))
        places = [
            pa.array(corner + km / degree)
            for corner, km, degree in zip(CORNER, (sent.east, sent.north), DEGREE, strict=True)
        ]
        columns = [*stamps, pa.array(sent.cabs), kinds, *places, pa.array(np.round(sent.speed, 1))]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class _Reports(NamedTuple):
    """Reports by column: cab, whether it drives, position (km), speed (km/h)."""

    cabs: IntArray
    driving: BoolArray
    east: FloatArray
    north: FloatArray
    speed: FloatArray


class _Traffic:
    """The positions of all cabs, advanced tick by tick."""

    def __init__(self, cabs: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._at = self._places(cabs)
        self._to = self._at.copy()
        #: the hot place that a cab drives to, or -1
        self._hot = np.full(cabs, -1)
        self._wait = rng.exponential(300.0, cabs)
        self._usual = np.clip(rng.normal(38.0, 5.0, cabs), *FREE)

    def tick(self, hour: float, length: float, number: int) -> _Reports:
        """Advance all cabs by `length` seconds; return their reports at the end of the tick."""
        self._leave(hour, length)
        driving = self._wait <= 0
        speed = np.where(driving, self._speeds(hour), 0.0)
        self._move(speed, hour, length)
        reporting = np.flatnonzero(driving | ((np.arange(len(driving)) + number) % 4 == 0))
        noise = self._rng.normal(0.0, 0.01, (2, len(reporting)))
        east, north = self._at[reporting].T + noise
        return _Reports(reporting, driving[reporting], east, north, speed[reporting])

    def _leave(self, hour: float, length: float) -> None:
        """Assign a destination to each cab whose waiting time ends in this tick."""
        waiting = self._wait > 0
        self._wait -= length
        leaving = np.flatnonzero(waiting & (self._wait <= 0))
        draws = np.array([place.draw * (0.3 + place.rush(hour)) for place in HOT])
        ends = np.cumsum(draws) / (draws.sum() + 2.0)
        self._hot[leaving] = np.searchsorted(ends, self._rng.random(len(leaving)))
        self._to[leaving] = self._places(len(leaving))
        for number, place in enumerate(HOT):
            self._to[leaving[self._hot[leaving] == number]] = place.east, place.north
        self._hot[self._hot == len(HOT)] = -1

    def _speeds(self, hour: float) -> FloatArray:
        queues = self._queues(hour)
        crawling = (queues > 0) & (self._left() <= queues)
        free = np.clip(self._usual * self._rng.lognormal(0.0, 0.15, len(self._usual)), *FREE)
        return np.where(crawling, self._rng.uniform(*CRAWL, len(free)), free)

    def _move(self, speed: FloatArray, hour: float, length: float) -> None:
        """Move each cab east or west first, then north or south; a cab outside a queue stops at its end."""
        queues = self._queues(hour)
        left = self._left()
        way = np.minimum(speed * length / 3600, np.where(left > queues, left - queues, left))
        for axis in (0, 1):
            gap = self._to[:, axis] - self._at[:, axis]
            step = np.minimum(np.abs(gap), way)
            self._at[:, axis] += np.sign(gap) * step
            way -= step
        arrived = (self._wait <= 0) & (self._left() < 1e-9)
        self._hot[arrived] = -1
        self._wait[arrived] = 60.0 + self._rng.exponential(300.0, int(arrived.sum()))

    def _queues(self, hour: float) -> FloatArray:
        """Return the length of the queue at each cab's destination, in km, 0 without a queue."""
        return np.asarray(np.array([*(place.queue(hour) for place in HOT), 0.0])[self._hot])

    def _left(self) -> FloatArray:
        """Return the remaining distance of each cab, in km."""
        return np.asarray(np.abs(self._to - self._at).sum(axis=1))

    def _places(self, n: int) -> FloatArray:
        """Return `n` random street corners, most of them in the middle of the city."""
        places = self._rng.beta(2.2, 2.2, (n, 2)) * (WIDTH, HEIGHT)
        return np.asarray((np.floor(places / BLOCK) + 0.5) * BLOCK)
