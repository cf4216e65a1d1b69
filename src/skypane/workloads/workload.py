"""A workload: arrivals x presence x points x keys x delays, composed into a stream of Arrow record batches.

arrivals -> presence -> (event time, source) -> + key, points, delay -> ordered by arrival
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from skypane.types import ConfigError, Duration, FloatArray, IntArray, Micros
from skypane.workloads.arrivals.sent import Fleet, Process, Sent, at_most, until
from skypane.workloads.chance import generator
from skypane.workloads.checks import SECOND, at_least, seconds
from skypane.workloads.content.keys import Zipf
from skypane.workloads.content.points import Classic, Points
from skypane.workloads.content.sources import Presence, Shared
from skypane.workloads.disorder.delays import Delays, NoDelay
from skypane.workloads.disorder.order import by_arrival

_ARRIVALS, _PRESENCE, _DELAYS, _POINTS, _KEYS = range(5)
_TIMESTAMP: Final = pa.timestamp("us", "UTC")

START: Final[Micros] = 1_577_836_800_000_000
"""Second 0 of a workload, unless told otherwise: 2020-01-01 00:00 UTC."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A stream that can be made again: the same config gives the same rows, each time it is iterated.

    arrivals: a Process (one source; wrap it in Shared for more) or a Fleet. rows, length: the stream ends after that many
    tuples, or at that event time since `start` (microseconds since 1970), whatever comes first; with neither it is endless.
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
        at_least("seed", 0, self.seed)
        if self.rows is not None:
            at_least("rows", 0, self.rows)
        if self.length is not None:
            seconds("length", self.length)
        if not isinstance(self.arrivals, Process | Fleet):
            raise ConfigError(f"need arrivals with times() or sent(), got {self.arrivals!r}")

    @property
    def schema(self) -> pa.Schema:
        """Columns: time (event), arrival, source, key, c0..c{d-1}."""
        fields = [("time", _TIMESTAMP), ("arrival", _TIMESTAMP), ("source", pa.int64()), ("key", pa.int64())]
        return pa.schema([*fields, *((f"c{j}", pa.float64()) for j in range(self.points.d))])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, ascending in `arrival`, in record batches of about 16K rows (more after long delays)."""
        return (batch for batch in by_arrival(self._by_event()) if batch.num_rows)

    __iter__ = batches

    def table(self) -> pa.Table:
        """Return all rows at once, ascending in `arrival`; raise ConfigError if the stream is endless."""
        if self.rows is None and self.length is None:
            raise ConfigError("an endless workload is no table; give rows= or length=")
        return pa.Table.from_batches(self.batches(), self.schema)

    def _by_event(self) -> Iterator[pa.RecordBatch]:
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
        stamps = [pa.array(column + self.start).view(_TIMESTAMP) for column in (times, arrivals)]
        columns = [*stamps, pa.array(sources), pa.array(keys), *(pa.array(column) for column in points.T)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
