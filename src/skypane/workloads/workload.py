"""A workload composes arrivals, presence, points, keys and delays into a stream of Arrow record batches.

arrivals -> presence -> (event time, source) -> + key, points, delay -> ordered by arrival
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skypane.types import ConfigError, Duration, FloatArray, IntArray, Micros
from skypane.workloads.argument_checks import SECOND, seconds
from skypane.workloads.arrivals.sent import Fleet, Process, SentTuples, at_most, until
from skypane.workloads.content.keys import Zipf
from skypane.workloads.content.points import Classic, PointDistribution
from skypane.workloads.content.senders import Presence, Shared
from skypane.workloads.disorder.delays import Delays, NoDelay
from skypane.workloads.stream import START, TIMESTAMP, Stream, generator

_ARRIVALS, _PRESENCE, _DELAYS, _POINTS, _KEYS = range(5)


@dataclass(frozen=True, slots=True)
class Workload(Stream):
    """A reproducible stream: the same config yields the same rows each time it is iterated.

    arrivals: a Process (one source; wrap it in Shared for more) or a Fleet. rows, length, start: as in Stream.
    Each part has its own random numbers: with other delays the same rows arrive in another order; with other points the
    times stay the same.
    """

    arrivals: Process | Fleet
    points: PointDistribution = field(default_factory=Classic)
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

    def _sent(self, fleet: Fleet) -> Iterator[SentTuples]:
        """Yield the sent tuples until `length` or `rows` is reached."""
        sent = fleet.sent(self._chance(_ARRIVALS))
        # Cut to the length before absent sources are removed, so that a stream whose sources are all silent ends too.
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
