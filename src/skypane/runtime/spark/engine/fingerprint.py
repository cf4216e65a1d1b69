"""What a batch is known by when Spark brings it again: how many rows, and which event times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio in 64 bits, as in Fibonacci hashing."""
_HALF = np.uint64(32)
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Rows, and a sum of hashes of their event times: the same in whatever order and partitions the rows come.

    >>> a, b = Fingerprint.of(pa.array([1, 2])), Fingerprint.of(pa.array([3, None]))
    >>> a + b == b + a == Fingerprint.of(pa.array([None, 3, 2, 1]))
    True
    """

    rows: int = 0
    times: int = 0

    @classmethod
    def of(cls, times: pa.Array) -> Fingerprint:
        """Return the fingerprint of rows with these times, in a type of 64 bits; null counts as a row."""
        known = times.drop_null().view(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)
        mixed = known * _MULTIPLIER
        mixed ^= mixed >> _HALF
        mixed *= mixed  # not linear: two shifts that cancel out in a sum of times do not cancel here
        mixed += _MULTIPLIER  # or the time 0 would be as good as none
        return cls(len(times), int(mixed.sum(dtype=np.uint64)))

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.rows + other.rows, (self.times + other.times) & _MASK)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FingerprintStage:
    """Reads all rows of a task, and yields their fingerprint; travels to the workers."""

    time: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = reduce(Fingerprint.__add__, (fingerprint_of(batch, self.time) for batch in batches), Fingerprint())
        yield pa.RecordBatch.from_pydict({"fingerprint": [json.dumps(total.to_json())]})


def fingerprint_of(batch: pa.RecordBatch, time: str) -> Fingerprint:
    """Return the fingerprint of a batch of rows."""
    return Fingerprint.of(batch.column(time))


def read(rows: DataFrame, time: str) -> Fingerprint:
    """Read all rows of a batch and do nothing with them; return their fingerprint.

    Every row goes through whatever stands before the engine, so that an operator with a state of its own commits it.
    """
    parts = rows.mapInArrow(FingerprintStage(time), "fingerprint string").collect()
    return reduce(Fingerprint.__add__, (Fingerprint(**json.loads(part.fingerprint)) for part in parts), Fingerprint())
