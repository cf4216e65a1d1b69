"""A workload: arrivals x presence x points x keys x delays, composed into a stream of Arrow record batches.

arrivals -> presence -> (event time, source) -> + key, points, delay -> ordered by arrival
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skypane.types import ConfigError, Duration, FloatArray, IntArray, Micros
from skypane.workloads.arrivals.sent import Fleet, Process, Sent, at_most, until
from skypane.workloads.chance import generator
from skypane.workloads.checks import SECOND, seconds
from skypane.workloads.content.keys import Zipf
from skypane.workloads.content.points import Classic, Points
from skypane.workloads.content.sources import Presence, Shared
from skypane.workloads.disorder.delays import Delays, NoDelay
from skypane.workloads.stream import START, TIMESTAMP, Stream

_ARRIVALS, _PRESENCE, _DELAYS, _POINTS, _KEYS = range(5)


@dataclass(frozen=True, slots=True)
class Workload(Stream):
    """A stream that can be made again: the same config gives the same rows, each time it is iterated.

    arrivals: a Process (one source; wrap it in Shared for more) or a Fleet. rows, length, start: as in Stream.
    The parts draw from random numbers of their own: with other delays the same rows come in another order; with other
    points the times stay what they were.
    """

    arrivals: Process | Fleet
    points: Points = field(default_factory=Classic)
    keys: Zipf = field(default_factory=Zipf)
    delays: Delays = field(default_factory=NoDelay)
    presence: Presence = field(default_factory=Presence)
    seed: int = 0
    rows: int | None = None
    length: Duration | None = None
    start: Micros = START

    def __post_init__(self) -> None:
        self.check_limits()
        if not isinstance(self.arrivals, Process | Fleet):
            raise ConfigError(f"need arrivals with times() or sent(), got {self.arrivals!r}")

    @property
    def schema(self) -> pa.Schema:
        """Columns: time (event), arrival, source, key, c0..c{d-1}."""
        fields = [("time", TIMESTAMP), ("arrival", TIMESTAMP), ("source", pa.int64()), ("key", pa.int64())]
        return pa.schema([*fields, *((f"c{j}", pa.float64()) for j in range(self.points.d))])

    def by_event(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows ascending in event time."""
        fleet = self.arrivals if isinstance(self.arrivals, Fleet) else Shared(self.arrivals)
        delays = self.delays.start(fleet.streams, self._chance(_DELAYS))
        for_points, for_keys, key_ends = self._chance(_POINTS), self._chance(_KEYS), self.keys.ends()
        for times, sources in self._sent(fleet):
            if not len(times):
                continue
            yield self._batch(
                times,
                times + delays(times, sources),
                sources,
                self.keys.draw(times, key_ends, for_keys),
                self.points.draw(times, for_points),
            )

    def _chance(self, part: int) -> np.random.Generator:
        return generator(self.seed, part)

    def _sent(self, fleet: Fleet) -> Iterator[Sent]:
        """Yield what is sent until length or rows are reached."""
        sent = fleet.sent(self._chance(_ARRIVALS))
        # The length is cut before sources are taken away: a stream that has gone silent ends in time, too.
        if self.length is not None:
            sent = until(sent, round(seconds("length", self.length) * SECOND))
        if self.presence != Presence():
            sent = self.presence.thinned(sent, fleet.streams, self._chance(_PRESENCE))
        return sent if self.rows is None else at_most(sent, self.rows)

    def _batch(
        self, times: IntArray, arrivals: IntArray, sources: IntArray, keys: IntArray, points: FloatArray
    ) -> pa.RecordBatch:
        stamps = [pa.array(column + self.start).view(TIMESTAMP) for column in (times, arrivals)]
        columns = [*stamps, pa.array(sources), pa.array(keys), *(pa.array(column) for column in points.T)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
