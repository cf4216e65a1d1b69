"""Rows as a stream: they come by their arrival times, as fast as a speed-up says, resumable at any row.

`skypane-replay` is a Python data source of Spark's own kind (pyspark.sql.datasource) that hands over Arrow batches. Its
offset is a row number, so a restarted query goes on where the last committed batch ended, and a replayed batch holds
the same rows.

    arrival time   |--a--b-----c-d--------e-->          rows in ascending order of arrival
    wall clock     |--a-b--c-d--e->                     speedup times faster, counted from the row a run starts at

The first trigger of each run brings one row only. It starts Spark's Python workers, whose seconds would otherwise
become days of arrivals at once; the clock starts after it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from skypane.places import Place
from skypane.runtime.spark import versions
from skypane.runtime.spark.machine.collector import keep_loaded
from skypane.runtime.spark.sources import registering
from skypane.runtime.spark.sources.generated import generated, read_parameters
from skypane.runtime.spark.sources.recordings import FORMAT, Recording, Replayable
from skypane.types import CheckpointError, ConfigError

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:
    versions.need("4.2", FORMAT)
    raise

PARTITIONS = 2


def replay(
    spark: SparkSession,
    path: Path,
    *,
    arrival: str | None = None,
    speedup: float | None = None,
    rows_per_trigger: int | None = None,
    partitions: int = PARTITIONS,
) -> DataFrame:
    """Return the recording at `path` as a streaming DataFrame, `speedup` times faster than it happened.

    With no speed-up all rows are there at once, and the trigger decides, or `rows_per_trigger`. `arrival` names the
    timestamp column whose order the rows have.
    """
    options = {"path": str(Place.of(path).resolved()), "arrival": arrival}
    return _stream(spark, options, speedup=speedup, rowsPerTrigger=rows_per_trigger, partitions=partitions)


def replay_workload(
    spark: SparkSession,
    name: str,
    parameters: Mapping[str, Any],
    *,
    speedup: float | None = None,
    rows_per_trigger: int | None = None,
    partitions: int = PARTITIONS,
) -> DataFrame:
    """Return the workload of that name (see skypane.workloads.workload) as a streaming DataFrame, as `replay`.

    `parameters` have `rows`, how many there are. What cannot be made is refused here, with the parameter's name.
    """
    generated(name, parameters)
    options = {"workload": name, "parameters": json.dumps(dict(parameters))}
    return _stream(spark, options, speedup=speedup, rowsPerTrigger=rows_per_trigger, partitions=partitions)


def register(spark: SparkSession) -> None:
    """Make `skypane-replay` known to a session by its name."""
    registering.register(spark, ReplaySource)


def _stream(spark: SparkSession, options: Mapping[str, str | None], **numbers: float | None) -> DataFrame:
    register(spark)
    as_texts = {name: str(value) for name, value in {**options, **numbers}.items() if value is not None}
    return spark.readStream.format(FORMAT).options(**as_texts).load()


@dataclass
class Rows(InputPartition):
    """Rows [start, end), read by one task, of a micro-batch whose first row is `since`."""

    start: int
    end: int
    since: int


def partitions_of(start: int, end: int, count: int) -> list[Rows]:
    """Cut rows [start, end) into at most `count` parts of about equal size, none empty."""
    cuts = np.linspace(start, end, count + 1).astype(np.int64).tolist()
    return [Rows(a, b, start) for a, b in pairwise(cuts) if b > a]


class ReplaySource(DataSource):
    """`spark.readStream.format("skypane-replay")`; a batch read gives all rows.

    path           an Arrow, parquet or csv file
    arrival        its timestamp column, in ascending order; needed with a speedup
    workload       instead of a path, the name of a workload
    parameters     of the workload, as a JSON object; `rows` must be among them
    speedup        seconds of arrival in a second of wall clock; all rows at once, if left out
    rowsPerTrigger rows of a micro-batch, at most
    partitions     tasks of a micro-batch (2)
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    @cached_property
    def source(self) -> Replayable:
        path, name = self.options.get("path"), self.options.get("workload")
        if (path is None) == (name is None):
            raise ConfigError(
                f"{FORMAT} needs option path, a file to replay, or workload, got only {sorted(self.options)}"
            )
        if path is not None:
            return Recording(
                Place.of(path, f"{FORMAT} option path").of_this_machine("a replay reads"), self.options.get("arrival")
            )
        return generated(str(name), read_parameters(self.options.get("parameters", "{}")))

    def schema(self) -> StructType:
        return from_arrow_schema(self.source.schema, prefer_timestamp_ntz=True)

    def reader(self, schema: StructType) -> DataSourceReader:
        del schema
        return ReplayReader(self.source, self._number("partitions", int, PARTITIONS))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return ReplayStreamReader(
            self.source,
            speedup=self._number("speedup", float, None),
            limit=self._number("rowsPerTrigger", int, None),
            partitions=self._number("partitions", int, PARTITIONS),
        )

    def _number(self, option: str, kind: Callable[[Any], float], default: Any) -> Any:
        text = self.options.get(option)
        if text is None:
            return default
        try:
            value = kind(text)
        except ValueError:
            value = kind(0)
        if not value > 0:
            raise ConfigError(f"option {option} of {FORMAT} must be a number above zero, got {text!r}")
        return value


class ReplayReader(DataSourceReader):
    """All rows, for batch queries."""

    def __init__(self, source: Replayable, partitions: int) -> None:
        self.source = source
        self.count = partitions

    def partitions(self) -> list[Rows]:
        return partitions_of(0, self.source.row_count, self.count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part = cast("Rows", partition)
        return self.source.slice(part.start, part.end, part.since)


class ReplayStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Rows by the clock. The clock lives in the one process that plans, never in a task."""

    def __init__(
        self,
        source: Replayable,
        *,
        speedup: float | None,
        limit: int | None,
        partitions: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if speedup is not None:
            source.due(0, 0)  # unusable arrival times are told of before the query starts
        self.source = source
        self.speedup = speedup
        self.limit = limit
        self.count = partitions
        self.clock = clock
        #: (clock, row) at which this run's time began; None before its first trigger and at that one
        self.began: tuple[float, int] | None = None
        self.primed = False

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        row = start["row"]
        if row > self.source.row_count:
            raise CheckpointError(
                f"the checkpoint stands at row {row} of {self.source.row_count} rows: they are other ones now"
            )
        most = row + limit.max_rows if isinstance(limit, ReadMaxRows) else self.source.row_count
        return {"row": min(most, self._due(row))}

    def _due(self, row: int) -> int:
        if self.speedup is None:
            return self.source.row_count
        if not self.primed:
            self.primed = True
            return min(row + 1, self.source.row_count)
        if self.began is None:
            self.began = (self.clock(), row)
        since, first = self.began
        return max(row, self.source.due(first, round((self.clock() - since) * self.speedup * 1e6)))

    def prepareForTriggerAvailableNow(self) -> None:
        self.speedup = None  # a recording is complete: all of it is available now

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.limit is None else ReadMaxRows(self.limit)

    def reportLatestOffset(self) -> dict[str, int]:
        return {"row": self.source.row_count}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Rows]:
        return partitions_of(start["row"], end["row"], self.count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part = cast("Rows", partition)
        yield from self.source.slice(part.start, part.end, part.since)
        keep_loaded(ReplayStreamReader)
