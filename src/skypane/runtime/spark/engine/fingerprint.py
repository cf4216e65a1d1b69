"""Fingerprints, by which the engine recognises a replayed batch: its row count and a hash of its event times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.snapshots import from_json, to_json

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio in 64 bits, as in Fibonacci hashing."""
_HALF = np.uint64(32)
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Row count and sum of hashes of the event times; it does not depend on the order or the partitions of the rows.

    >>> a, b = Fingerprint.of(pa.array([1, 2])), Fingerprint.of(pa.array([3, None]))
    >>> a + b == b + a == Fingerprint.of(pa.array([None, 3, 2, 1]))
    True
    """

    rows: int = 0
    times: int = 0

    @classmethod
    def of(cls, times: pa.Array) -> Fingerprint:
        """Return the fingerprint of rows with these times, which have a 64-bit type; a null time counts as a row."""
        known = times.drop_null().view(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)
        mixed = known * _MULTIPLIER
        mixed ^= mixed >> _HALF
        mixed *= mixed  # nonlinear, so that two opposite shifts of times do not cancel out in the sum
        mixed += _MULTIPLIER  # gives the time 0 a hash other than 0
        return cls(len(times), int(mixed.sum(dtype=np.uint64)))

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.rows + other.rows, (self.times + other.times) & _MASK)


@dataclass(frozen=True, slots=True)
class FingerprintStage:
    """Reads all rows of a task and yields their fingerprint; travels to the workers."""

    time: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = reduce(Fingerprint.__add__, (fingerprint_of(batch, self.time) for batch in batches), Fingerprint())
        yield pa.RecordBatch.from_pydict({"fingerprint": [json.dumps(to_json(total))]})


def fingerprint_of(batch: pa.RecordBatch, time: str) -> Fingerprint:
    """Return the fingerprint of a batch of rows."""
    return Fingerprint.of(batch.column(time))


def read(rows: DataFrame, time: str) -> Fingerprint:
    """Read all rows of a batch, and return their fingerprint.

    Every row passes through the operators before the engine, so that a stateful operator commits its state.
    """
    parts = rows.mapInArrow(FingerprintStage(time), "fingerprint string").collect()
    return reduce(
        Fingerprint.__add__, (from_json(Fingerprint, json.loads(part.fingerprint)) for part in parts), Fingerprint()
    )
