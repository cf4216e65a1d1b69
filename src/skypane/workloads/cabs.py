"""Cabs of a city that report where they are and how fast they drive (paper 3, section 1.1), made to order.

    wait for a fare -> drive to the next place, street by street -> wait ...

Places that draw many cabs have an hour in which a queue grows on the streets that lead to them, and dissolves again: who
drives there comes along at speed, meets the end of the queue, and crawls the rest of the way. Where queues end is known
(`HotPlace.queue`), so that what a query finds can be held against it. The city is made up; it lies where San Francisco does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from skypane.types import BoolArray, Duration, FloatArray, IntArray, Micros
from skypane.workloads.arrivals.sent import CHUNK
from skypane.workloads.chance import generator
from skypane.workloads.checks import SECOND, at_least, seconds
from skypane.workloads.disorder.delays import ExponentialDelay
from skypane.workloads.disorder.held import HeldBack
from skypane.workloads.stream import START, TIMESTAMP, Stream

_MOVES, _DELAYS = range(2)

WIDTH, HEIGHT = 16.0, 12.0
"""Of the city, in km, east and north of its corner."""
CORNER: Final = (-122.52, 37.70)
"""Its south-western corner: longitude and latitude, in degrees."""
DEGREE: Final = (87.9, 111.2)
"""Kilometres in a degree of longitude and of latitude, there."""
BLOCK: Final = 0.25
"""Kilometres from one street to the next, the first half as far from the corner."""
CRAWL: Final = (2.0, 9.0)
"""Speeds in a queue, km/h; uniform."""
FREE: Final = (24.0, 60.0)
"""Speeds outside of one, km/h, at the least and at the most."""


class HotPlace(NamedTuple):
    """A place that draws cabs, all the more around its `hour` of the day."""

    name: str
    #: km east and north of the corner
    east: float
    north: float
    hour: float
    #: how long before and after its hour there is a queue, in hours
    around: float
    #: km of the longest queue
    longest: float
    #: how many cabs it draws, beside other places
    draw: float

    def rush(self, hour: float) -> float:
        """Return how much of its rush there is at an hour of the day, 0 to 1."""
        return max(0.0, 1.0 - abs(hour - self.hour) / self.around)

    def queue(self, hour: float) -> float:
        """Return the length of its queue on each street that leads to it, in km."""
        return self.longest * self.rush(hour)


HOT: Final = (
    HotPlace("Station", 7.375, 7.125, 8.0, 1.5, 2.5, 1.0),
    HotPlace("Airport", 13.375, 2.625, 7.0, 1.25, 3.0, 0.8),
    HotPlace("Ferry", 10.375, 9.875, 8.75, 1.0, 1.5, 0.6),
    HotPlace("Fair", 2.875, 3.375, 9.5, 1.25, 2.0, 0.8),
)


@dataclass(frozen=True, slots=True)
class Cabs(Stream):
    """Reports of `cabs` cabs, each one `every` so often; at a rank one in four of them.

    delay       mean time that a report is on its way, exponential
    dead_every  mean time until a cab comes into a place without network; what it reports there arrives when it has left,
    dead_for    after so long on average
    rows, length, start: as in Stream; the day begins at six in the morning, second 0
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
        """Columns: time, arrival, cab, report ("traffic", or "waiting" at a rank), longitude, latitude, speed (km/h)."""
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
        # Cab i reports at its own moment of each tick, the first one first: reports of a tick are in order as they stand.
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
                told = _Reports(*map(np.concatenate, zip(*(part for _, part in parts), strict=True)))
                yield self._batch(times, times + delays(times, told.cabs), told)
                parts = []

    def _hour(self, at: float) -> float:
        """Return the hour of the day, `at` seconds after the start."""
        return (self.start / SECOND + at) / 3600 % 24

    def _batch(self, times: IntArray, arrivals: IntArray, told: _Reports) -> pa.RecordBatch:
        stamps = [pa.array(column + self.start).view(TIMESTAMP) for column in (times, arrivals)]
        kinds = pa.array(["waiting", "traffic"]).take(pa.array(told.driving.astype(np.int64)))
        places = [
            pa.array(corner + km / degree)
            for corner, km, degree in zip(CORNER, (told.east, told.north), DEGREE, strict=True)
        ]
        columns = [*stamps, pa.array(told.cabs), kinds, *places, pa.array(np.round(told.speed, 1))]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class _Reports(NamedTuple):
    """Who reports, whether it drives, where it is (km), how fast (km/h)."""

    cabs: IntArray
    driving: BoolArray
    east: FloatArray
    north: FloatArray
    speed: FloatArray


class _Traffic:
    """Where all cabs are, tick by tick."""

    def __init__(self, cabs: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._at = self._places(cabs)
        self._to = self._at.copy()
        #: the hot place that a cab drives to, or -1
        self._hot = np.full(cabs, -1)
        self._wait = rng.exponential(300.0, cabs)
        self._usual = np.clip(rng.normal(38.0, 5.0, cabs), *FREE)

    def tick(self, hour: float, length: float, number: int) -> _Reports:
        """Move all by `length` seconds; return what they report then."""
        self._leave(hour, length)
        driving = self._wait <= 0
        speed = np.where(driving, self._speeds(hour), 0.0)
        self._move(speed, hour, length)
        told = np.flatnonzero(driving | ((np.arange(len(driving)) + number) % 4 == 0))
        noise = self._rng.normal(0.0, 0.01, (2, len(told)))
        east, north = self._at[told].T + noise
        return _Reports(told, driving[told], east, north, speed[told])

    def _leave(self, hour: float, length: float) -> None:
        """Send those who have waited long enough somewhere."""
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
        """Along the street first, then to the north or south; nobody drives past the end of a queue at speed."""
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
        """Return how long the queue is that each drives to, 0 where there is none."""
        return np.asarray(np.array([*(place.queue(hour) for place in HOT), 0.0])[self._hot])

    def _left(self) -> FloatArray:
        """Return how many km each has to drive still."""
        return np.asarray(np.abs(self._to - self._at).sum(axis=1))

    def _places(self, n: int) -> FloatArray:
        """Return corners of streets, most of them in the middle of the city."""
        places = self._rng.beta(2.2, 2.2, (n, 2)) * (WIDTH, HEIGHT)
        return np.asarray((np.floor(places / BLOCK) + 0.5) * BLOCK)
