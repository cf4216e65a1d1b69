"""What the tasks of a batch read, as Spark's would: without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from skypane.runtime.row_parser import Malformed
from skypane.runtime.spark.sources.many.discovery import KINDS
from skypane.runtime.spark.sources.many.input_kind import OffsetRange
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner

NOTHING = Offsets({})


def parts_of(
    plan: Planner, start: Offsets, end: Offsets, columns: pa.Schema
) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Return what the tasks of a batch read, each from its pickled ranges."""
    for task in plan.assigned(start, end):
        sent: list[OffsetRange] = cloudpickle.loads(cloudpickle.dumps(task))  # as Spark sends it
        for name, kind in KINDS.items():
            yield from kind.read([part for part in sent if part.input.kind == name], columns)


def values_of(found: pa.Table | Malformed, wrong: Callable[[Malformed], Any], column: str = "n") -> list[Any]:
    """Return the values of a table's column, or what is wrong with a row that does not parse."""
    return [wrong(found)] if isinstance(found, Malformed) else found[column].to_pylist()


def kept(offsets: Offsets) -> Offsets:
    """Return offsets as Spark's log has kept them."""
    return Offsets.of(json.loads(json.dumps(offsets.to_json())))
