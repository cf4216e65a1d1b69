"""How tests open sinks that they have made themselves."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa
from tests.runtime.rows_of_batches import SCHEMA

from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.sink import Sink

AnySink = TypeVar("AnySink", bound=Sink)


def opened(
    sink: AnySink, driver: str = "driver-1", next_batch: int = 0, schema: pa.Schema = SCHEMA, role: str = "output"
) -> AnySink:
    """Return a sink as a driver of the query q that starts opens it."""
    sink.check(schema)
    sink.open(QueryStart("q", driver, next_batch, role=role))
    return sink
