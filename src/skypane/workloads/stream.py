"""The base class of synthetic streams: reproducible, limited by rows or length, and in order of arrival."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.random import SFC64, Generator, SeedSequence

from skypane.types import ConfigError, Duration, Micros
from skypane.workloads.argument_checks import SECOND, at_least, seconds
from skypane.workloads.disorder.order import by_arrival, micros_of

TIMESTAMP: Final = pa.timestamp("us", "UTC")

START: Final[Micros] = 1_577_836_800_000_000
"""Second 0 of a stream by default: 2020-01-01 00:00 UTC."""


class Stream(ABC):
    """A reproducible stream: the same config yields the same rows each time it is iterated.

    It ends after `rows` tuples, or at the event time `length` after `start` (microseconds since 1970), whichever is
    reached first; with neither it is endless.
    """

    __slots__ = ()
    seed: int
    rows: int | None
    length: Duration | None
    start: Micros

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns, which include `time` (of the event) and `arrival`."""

    @abstractmethod
    def by_event(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows ascending in event time; no arrival precedes its event time."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, ascending in `arrival`, in record batches of about 16K rows (more after long delays)."""
        return (batch for batch in by_arrival(self.by_event()) if batch.num_rows)

    __iter__ = batches

    def table(self) -> pa.Table:
        """Return all rows at once, ascending in `arrival`; raise ConfigError if the stream is endless."""
        if self.rows is None and self.length is None:
            raise ConfigError("an endless workload cannot be a table; give rows= or length=")
        return pa.Table.from_batches(self.batches(), self.schema)

    def check_limits(self) -> None:
        """Raise ConfigError if seed, rows or length is out of range."""
        at_least("seed", 0, self.seed)
        if self.rows is not None:
            at_least("rows", 0, self.rows)
        if self.length is not None:
            seconds("length", self.length)

    def within(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `batches`, ascending in event time, up to the stream's length or number of rows."""
        left = self.rows
        end = None if self.length is None else self.start + round(seconds("length", self.length) * SECOND)
        while left is None or left > 0:
            batch = next(batches)
            before = batch.num_rows if end is None else int(np.searchsorted(micros_of(batch, "time"), end))
            kept = batch.slice(0, before if left is None else min(before, left))
            yield kept
            if before < batch.num_rows:
                return
            left = None if left is None else left - kept.num_rows


def generator(seed: int, part: int) -> Generator:
    """Return the random number generator of one numbered part of a workload.

    Parts are independent of each other: other delays apply to the same tuples and leave their points unchanged.
    """
    return Generator(SFC64(SeedSequence(entropy=seed, spawn_key=(part,))))
