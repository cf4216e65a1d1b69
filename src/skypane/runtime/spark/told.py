"""What the source of many inputs says of them, as it comes out of Spark: in the progress of the query."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from skypane.runtime.spark.sources.many.watching import Told, from_json

SCHEMA = pa.schema([
    ("input", pa.string()),
    ("reader", pa.int64()),
    ("rate", pa.float64()),
    ("forecast", pa.float64()),
    ("lag", pa.int64()),
    ("offset", pa.int64()),
    ("state", pa.string()),
])  # fmt: skip


EVERY = 2.0
"""Seconds between looks at the progress from within batches: a look takes a tenth of a small batch with 300 inputs."""


class InputsTold:
    """What is told of a query's inputs, as of its last batch; nothing for a query of other sources.

    Whether it has many inputs is known after the first progress: others are not asked again.
    """

    def __init__(self) -> None:
        #: the query, once it is known
        self.query: StreamingQuery | None = None
        self._has_inputs = True
        self._last: tuple[float, Told] | None = None

    def __call__(self) -> Told:
        """Return what was told at most some seconds ago: for batches, which may be many a second."""
        now = time.monotonic()
        if self._last is None or now - self._last[0] >= EVERY:
            told = self.now()
            self._last = (now, told) if told.inputs else None
            return told
        return self._last[1]

    def now(self) -> Told:
        """Return what is told now."""
        if self.query is None or not self._has_inputs:
            return Told()
        progress = self.query.lastProgress
        if progress is None:
            return Told()
        sources = progress["sources"]
        told = [one for source in sources if (one := from_json(_value(source.get("latestOffset")))) is not None]
        # A batch that comes again after a start is not planned, and tells nothing.
        self._has_inputs = bool(told) or any("PythonMicroBatchStream" in source["description"] for source in sources)
        return Told(
            tuple(row for one in told for row in one.inputs),
            tuple(decision for one in told for decision in one.decisions),
        )

    def table(self) -> pa.Table:
        """Return the same as a table."""
        rows = self.now().inputs
        return pa.table({name: [getattr(row, name) for row in rows] for name in SCHEMA.names}, schema=SCHEMA)


def _value(offset: Any) -> Any:
    return json.loads(offset) if isinstance(offset, str) and offset.startswith("{") else offset
