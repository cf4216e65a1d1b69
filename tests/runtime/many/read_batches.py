"""What the tasks of a batch read, as Spark's would: without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from skypane.runtime.row_parser import Malformed
from skypane.runtime.spark.sources.many.discovery import KINDS, listed
from skypane.runtime.spark.sources.many.event_times import EventTimes
from skypane.runtime.spark.sources.many.input_kind import OffsetRange
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner

NOTHING = Offsets({})
N = pa.schema([("n", pa.int64())])


def numbers(*values: int) -> bytes:
    return b"".join(b'{"n": %d}\n' % n for n in values)


def grow(folder: Path, **lines: int) -> None:
    """Append so many lines of eight bytes to files, by their names without .csv."""
    for name, count in lines.items():
        with (folder / f"{name}.csv").open("a") as file:
            file.write("0123456\n" * count)


def planner(*given: object, on_loss: str = "fail", times: EventTimes | None = None) -> Planner:
    """Return a planner for two readers."""
    listing = listed(given)
    return Planner(lambda: listing, 2, on_loss, times)


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


def batches(plan: Planner, most: int | None = None, start: Offsets = NOTHING) -> Iterator[tuple[Offsets, Offsets]]:
    """Yield where each batch begins and ends, until all is read."""
    while (end := kept(plan.latest(start, most))) != start:
        yield start, end
        start = end


def read_in_step(plan: Planner, most: int, times_of: Callable[[Offsets, Offsets], list[int]]) -> tuple[list[int], int]:
    """Return the times of all rows, and how far one lies behind the newest of the batches before its own, at most."""
    found, newest, latest = list[int](), 0, 0
    for start, end in batches(plan, most):
        times = times_of(start, end)
        latest = max([latest, *(newest - time for time in times if time >= 0)])
        newest = max([newest, *times])
        found += times
    return found, latest


def first_batches(plan: Planner, most: int, count: int, start: Offsets = NOTHING) -> Iterator[tuple[Offsets, Offsets]]:
    """Yield where each of so many batches begins and ends."""
    for _ in range(count):
        end = kept(plan.latest(start, most))
        assert end != start
        yield start, end
        start = end
