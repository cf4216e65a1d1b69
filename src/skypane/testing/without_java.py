"""A session without Java: the engine of a job, its files and its sinks run in this process as they do beside Spark.

Batches go in, answers, rejected rows and manifests come out; a stream can be stopped, drained, started again with another
query, and killed at any operation on a file (kills.py). Expressions, conditions that only SQL evaluates, and an
exchange of rows between tasks are refused: Spark computes them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, Final, Self, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.locations import Location
from skypane.runtime.spark.classic_host import ClassicHost
from skypane.testing.frames import Frame
from skypane.testing.stream_query import StreamFrame
from skypane.types import ConfigError

_NEVER: Final = 1e9
"""Seconds that no exchange is worth: only Spark moves rows between tasks."""


class Session:
    """Takes the place of a SparkSession in sp.stream(session.stream(batches), ...).

    seed      of the chance by which the rows of a batch are cut into partitions, and tasks are tried again
    repeated  the share of tasks that run twice, as when a worker dies after its task has written files: the first try's
              files lie in the checkpoint until the next start

    >>> session, arriving = Session(), []
    >>> rows = session.stream(arriving, pa.schema({"ts": pa.timestamp("us", "UTC"), "price": pa.float64()}))
    >>> rows.isStreaming
    True
    """

    sparkContext: Final = None  # noqa: N815 - PySpark's name
    """There is no Java."""
    version: Final = pyspark.__version__

    def __init__(self, seed: int = 0, *, repeated: float = 0.0) -> None:
        self._chance, self._repeated = random.Random(seed), repeated
        self.conf = _Settings({"spark.master": "local[2]", "spark.sql.session.timeZone": "UTC"})
        self.engine_host = _Host(cast("SparkSession", self))

    def stream(
        self,
        batches: Sequence[pa.Table],
        schema: pa.Schema | None = None,
        *,
        at_once: int | Callable[[], int] = 1,
    ) -> StreamFrame:
        """Return the stream of `batches`, tables of one schema, of which a micro-batch takes the next `at_once`.

        A list may grow while a query runs, and before the next start: append what arrives. Times are "us" in UTC, as
        Spark sends them; `schema` is needed if there is no batch yet.
        """
        if schema is None and not batches:
            raise ConfigError("a stream without batches needs schema=, the Arrow schema of those that will come")
        known = batches[0].schema if schema is None else schema
        return StreamFrame(self, known, batches, at_once if callable(at_once) else lambda: at_once)

    def cut(self, rows: pa.Table) -> list[pa.Table]:
        """Return the rows of a micro-batch as partitions, one to three, some perhaps empty."""
        cuts = sorted(self._chance.randint(0, rows.num_rows) for _ in range(self._chance.choice([0, 0, 1, 2])))
        pairs = zip([0, *cuts], [*cuts, rows.num_rows], strict=True)
        return [rows.slice(begin, end - begin) for begin, end in pairs]

    def tries(self) -> int:
        """Return how often a task runs."""
        return 2 if self._chance.random() < self._repeated else 1

    @property
    def read(self) -> _Reader:
        return _Reader(self)

    def range(self, start: int, end: int | None = None, step: int = 1, numPartitions: int | None = None) -> Frame:
        del numPartitions  # a partition for each number, as the engine requests them
        numbers = range(start) if end is None else range(start, end, step)
        return Frame(self, [pa.table({"id": pa.array([number], pa.int64())}) for number in numbers])

    def createDataFrame(self, data: pa.Table | Iterable[Any], schema: StructType | None = None) -> Frame:
        if isinstance(data, pa.Table):
            return Frame(self, [data])
        return Frame(self, [pa.Table.from_pylist([*data], schema=None if schema is None else _in_arrow(schema))])


class _Host(ClassicHost):
    """Runs engines in this process, beside no Java."""

    def costs(self) -> Costs:
        return replace(DEFAULT_COSTS, exchange=_NEVER)


class _Settings(dict[str, Any]):
    """The settings of a session."""

    def set(self, name: str, value: Any) -> None:
        self[name] = str(value)

    def unset(self, name: str) -> None:
        self.pop(name, None)


class _Reader:
    """Reads files of parquet, of a schema."""

    def __init__(self, session: Session, schema: pa.Schema | None = None) -> None:
        self._session, self._schema = session, schema

    def schema(self, schema: StructType) -> Self:
        return type(self)(self._session, _in_arrow(schema))

    def parquet(self, *urls: str) -> Frame:
        files = [Path(Location.of(url).path) for url in urls]
        paths = [path for file in files for path in (sorted(file.glob("*.parquet")) if file.is_dir() else [file])]
        return Frame(self._session, [pq.read_table(path, schema=self._schema) for path in paths])


def _in_arrow(schema: StructType) -> pa.Schema:
    zone: Mapping[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)
