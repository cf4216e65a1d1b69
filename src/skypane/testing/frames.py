"""DataFrames of a session without Java: tables in this process, on which the engine runs its own stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol, Self

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.types import StructType

from skypane.runtime.spark.spark_schema import spark_schema
from skypane.types import ConfigError

_Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

PIECE: Final = 1_000
"""Rows of an Arrow batch, at most: a stage gets the rows of a task in several."""


class Tasks(Protocol):
    """Decisions of a session about the tasks that run over a frame."""

    def tries(self) -> int:
        """Return how often a task runs."""
        ...

    def cut(self, rows: pa.Table) -> list[pa.Table]:
        """Return the rows of a micro-batch as partitions."""
        ...


class Frame(DataFrame):
    """Rows of a session without Java, a table for each partition; it has what the engine and its sinks request of Spark.

    Whatever Spark would compute raises ConfigError: such a job is tested with Spark.
    """

    def __new__(cls, *_: object, **__: object) -> Self:  # PySpark's makes one of Java's
        """Make a frame that no object of Java is behind."""
        return object.__new__(cls)

    def __init__(self, session: Tasks, parts: Sequence[pa.Table], stage: _Stage | None = None) -> None:
        self._session, self._parts, self._stage = session, parts, stage  # type: ignore[assignment]

    @property
    def sparkSession(self) -> Any:
        return self._session

    @property
    def arrow_schema(self) -> pa.Schema:
        return self._parts[0].schema

    @property
    def schema(self) -> StructType:
        return spark_schema(self.arrow_schema)

    @property
    def columns(self) -> list[str]:
        return list(self.arrow_schema.names)

    @property
    def isStreaming(self) -> bool:
        return False

    def select(self, *columns: Any) -> Frame:
        names = [name_of(column) for column in columns]
        return Frame(self.sparkSession, [part.select(names) for part in self._parts])

    def drop(self, *columns: Any) -> Frame:
        dropped = {name_of(column) for column in columns}
        return self.select(*(name for name in self.columns if name not in dropped))

    def selectExpr(self, *_: str) -> Frame:  # type: ignore[override]
        """Mark each row, in one more column, as one whose texts are not too long to cross: here they cross nothing."""
        marks = (pa.array([False] * part.num_rows, pa.bool_()) for part in self._parts)
        return Frame(self.sparkSession, [
            part.append_column("mark", mark) for part, mark in zip(self._parts, marks, strict=True)
        ])  # fmt: skip

    def where(self, condition: Any) -> Frame:
        """Keep all rows under the bound by which a driver takes few; another condition is Spark's."""
        if not (isinstance(condition, str) and "monotonically_increasing_id" in condition):
            raise needs_spark("a filter")
        return self

    def withColumns(self, columns: Mapping[str, Any]) -> Frame:  # type: ignore[override]
        raise needs_spark(f"the column {next(iter(columns))!r}")

    def coalesce(self, numPartitions: int) -> Frame:
        tasks, parts = min(numPartitions, len(self._parts)), len(self._parts)
        cuts = pairwise(task * parts // tasks for task in range(tasks + 1))
        return Frame(self.sparkSession, [pa.concat_tables(self._parts[first:last]) for first, last in cuts])

    def repartition(self, *_: Any) -> Frame:
        raise needs_spark("an exchange of rows between tasks")

    def mapInArrow(self, func: _Stage, *_: Any, **__: Any) -> Frame:  # type: ignore[override]
        return Frame(self.sparkSession, self._parts, func)

    def collect(self) -> list[Row]:
        tables = [table for part in self._parts for table in self._of_task(part)]
        return [Row(**row) for table in tables for row in table.to_pylist()]

    def toArrow(self) -> pa.Table:
        return pa.concat_tables(table for part in self._parts for table in self._of_task(part))

    def toPandas(self) -> Any:
        return self.toArrow().to_pandas()

    def count(self) -> int:
        return int(self.toArrow().num_rows)

    def toLocalIterator(self, prefetchPartitions: bool = False) -> Iterator[Row]:
        del prefetchPartitions
        return iter(self.collect())

    def show(self, n: int = 20, *_: Any, **__: Any) -> None:
        print(self.toArrow().slice(0, n).to_pylist())  # noqa: T201 - what it is for

    def _of_task(self, part: pa.Table) -> list[pa.Table]:
        """Return the rows of a task; if it is tried twice, the first try leaves what it has written."""
        if self._stage is None:
            return [part]
        for _ in range(self.sparkSession.tries()):
            batches = part.combine_chunks().to_batches(max_chunksize=PIECE) or part.schema.empty_table().to_batches()
            made = list(self._stage(iter(batches)))
        return [pa.Table.from_batches(made)] if made else []


def needs_spark(what: str) -> ConfigError:
    """Return the error for what only Spark computes."""
    return ConfigError(
        f"{what} needs Spark, and this session has none: name columns of the batches, or test it with Spark"
    )


def name_of(column: Any) -> str:
    """Return the name that a column is requested by; raise ConfigError for an expression."""
    if not isinstance(column, str):
        raise needs_spark(f"the expression {column}")
    return column[1:-1].replace("``", "`") if column.startswith("`") else column
