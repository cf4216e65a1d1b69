"""Replay rows as a stream: they arrive by their arrival times, times a speed-up, and can be resumed at any row.

`skypane-replay` is a Python data source (pyspark.sql.datasource) that returns Arrow record batches. Its offset is a row
number, so a restarted query continues where the last committed batch ended, and a replayed batch holds the same rows.

    arrival time   |--a--b-----c-d--------e-->          rows in ascending order of arrival
    wall clock     |--a-b--c-d--e->                     speedup times faster, counted from the first row of a run

The first trigger of each run reads only one row. It starts Spark's Python workers, which takes seconds that would
otherwise become days of arrivals at once; the clock starts after it.
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

from skypane.locations import Location
from skypane.runtime.spark import versions
from skypane.runtime.spark.machine.worker_memory import keep_loaded
from skypane.runtime.spark.sources import registration
from skypane.runtime.spark.sources.generated import generated, read_parameters
from skypane.runtime.spark.sources.recordings import FORMAT, Recording, Replayable
from skypane.types import CheckpointError, ConfigError

versions.need("4.2", FORMAT)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow  # noqa: E402

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

    Without a speed-up all rows are available at once, and the trigger or `rows_per_trigger` sets the size of batches.
    `arrival` names the timestamp column by which the rows are ordered.
    """
    options = {"path": str(Location.of(path).resolved()), "arrival": arrival}
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
    """Return the named workload (see skypane.workloads.workload) as a streaming DataFrame, in the same way as `replay`.

    `parameters` must include `rows`, the number of rows. Raises ConfigError, naming the parameter, if one is invalid.
    """
    generated(name, parameters)
    options = {"workload": name, "parameters": json.dumps(dict(parameters))}
    return _stream(spark, options, speedup=speedup, rowsPerTrigger=rows_per_trigger, partitions=partitions)


def register(spark: SparkSession) -> None:
    """Register `skypane-replay` with a session."""
    registration.register(spark, ReplaySource)


def _stream(spark: SparkSession, options: Mapping[str, str | None], **numbers: float | None) -> DataFrame:
    register(spark)
    as_texts = {name: str(value) for name, value in {**options, **numbers}.items() if value is not None}
    return spark.readStream.format(FORMAT).options(**as_texts).load()


@dataclass
class RowRange(InputPartition):
    """Rows [start, end) that one task reads, of a micro-batch whose first row is `since`."""

    start: int
    end: int
    since: int


def partitions_of(start: int, end: int, count: int) -> list[RowRange]:
    """Divide rows [start, end) into at most `count` non-empty parts of about equal size."""
    cuts = np.linspace(start, end, count + 1).astype(np.int64).tolist()
    return [RowRange(a, b, start) for a, b in pairwise(cuts) if b > a]


class ReplaySource(DataSource):
    """`spark.readStream.format("skypane-replay")`; a batch read returns all rows.

    path           an Arrow, parquet or csv file
    arrival        the timestamp column, in ascending order; required with a speedup
    workload       the name of a workload, instead of a path
    parameters     parameters of the workload, as a JSON object that includes `rows`
    speedup        seconds of arrival per second of wall clock; default: all rows at once
    rowsPerTrigger the largest number of rows in a micro-batch
    partitions     tasks per micro-batch; default 2
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
                Location.of(path, f"{FORMAT} option path").of_this_machine("a replay reads"),
                self.options.get("arrival"),
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
    """Batch reader: returns all rows."""

    def __init__(self, source: Replayable, partitions: int) -> None:
        self.source = source
        self.count = partitions

    def partitions(self) -> list[RowRange]:
        return partitions_of(0, self.source.row_count, self.count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part = cast("RowRange", partition)
        return self.source.slice(part.start, part.end, part.since)


class ReplayStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streaming reader: returns rows by the clock, which exists only in the planning process, never in a task."""

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
            source.due(0, 0)  # raises ConfigError for unusable arrival times before the query starts
        self.source = source
        self.speedup = speedup
        self.limit = limit
        self.count = partitions
        self.clock = clock
        #: (clock, row) at which this run's time began; None until its second trigger
        self.began: tuple[float, int] | None = None
        self.primed = False

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        row = start["row"]
        if row > self.source.row_count:
            raise CheckpointError(
                f"the checkpoint is at row {row}, but the source has {self.source.row_count} rows: it has changed"
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

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[RowRange]:
        return partitions_of(start["row"], end["row"], self.count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part = cast("RowRange", partition)
        yield from self.source.slice(part.start, part.end, part.since)
        keep_loaded(ReplayStreamReader)
