"""What the source of many inputs says of them, as it comes out of Spark: in the progress of the query."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from skypane.metrics import InputSeen
from skypane.runtime.spark.sources.many.watching import from_json

SCHEMA = pa.schema([
    ("input", pa.string()),
    ("reader", pa.int64()),
    ("rate", pa.float64()),
    ("forecast", pa.float64()),
    ("lag", pa.int64()),
    ("offset", pa.int64()),
    ("state", pa.string()),
])  # fmt: skip


class InputsTold:
    """The table of a query's inputs, as of its last batch; empty for a query of other sources.

    Whether it has many inputs is known after the first progress: others are not asked again.
    """

    def __init__(self) -> None:
        #: the query, once it is known
        self.query: StreamingQuery | None = None
        self._has_inputs = True

    def __call__(self) -> tuple[InputSeen, ...]:
        if self.query is None or not self._has_inputs:
            return ()
        progress = self.query.lastProgress
        if progress is None:
            return ()
        tables = [
            table for source in progress["sources"] if (table := from_json(_value(source["latestOffset"]))) is not None
        ]
        self._has_inputs = bool(tables)
        return tuple(row for table in tables for row in table)

    def table(self) -> pa.Table:
        """Return the same as a table."""
        rows = self()
        return pa.table({name: [getattr(row, name) for row in rows] for name in SCHEMA.names}, schema=SCHEMA)


def _value(offset: Any) -> Any:
    return json.loads(offset) if isinstance(offset, str) and offset.startswith("{") else offset
