"""What the engine requests of Spark, played in this process: rows in parts, each lifted by the real stages, some of them twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Frame:
    """A DataFrame: a table for each partition."""

    def __init__(self, spark: Spark, parts: Sequence[pa.Table], stage: Stage | None = None) -> None:
        self.sparkSession, self._parts, self._stage = spark, list(parts), stage

    @property
    def columns(self) -> list[str]:
        return list(self._parts[0].column_names)

    def coalesce(self, tasks: int) -> Frame:
        parts = [pa.concat_tables(self._parts[task::tasks]) for task in range(min(tasks, len(self._parts)))]
        return Frame(self.sparkSession, parts)

    def selectExpr(self, *_: str) -> Frame:
        """Mark no text as longer than may cross: they are short."""
        return Frame(self.sparkSession, [
            part.append_column("mark_", pa.array([False] * len(part), pa.bool_())) for part in self._parts
        ])  # fmt: skip

    def where(self, _: str) -> Frame:
        """Keep all rows: the driver takes so few."""
        return self

    def select(self, *names: str) -> Frame:
        return Frame(self.sparkSession, [part.select(names) for part in self._parts])

    def mapInArrow(self, stage: Stage, _schema: str) -> Frame:
        return Frame(self.sparkSession, self._parts, stage)

    def collect(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(**row) for part in self._parts for row in self._tried(part)]

    def toArrow(self) -> pa.Table:
        return pa.concat_tables(self._parts)

    def _tried(self, part: pa.Table) -> list[dict[str, Any]]:
        """Return what a task returns; of one that is tried again, the first try's files stay."""
        assert self._stage is not None
        for _ in range(2 if self.sparkSession.chance.random() < 0.05 else 1):
            batches = list(self._stage(iter(part.combine_chunks().to_batches(max_chunksize=17))))
        return [row for batch in batches for row in batch.to_pylist()]


class Spark:
    """A session."""

    def __init__(self, schema: pa.Schema, chance: random.Random) -> None:
        self._schema, self.chance = schema, chance
        self.sparkContext = None  # there is no Java
        self.conf = SimpleNamespace(
            get=lambda name, default=None: "local[2]" if name == "spark.master" else default, set=lambda *_: None
        )

    @property
    def read(self) -> Self:
        return self

    def schema(self, _: object) -> Self:
        return self

    def range(self, start: int, end: int, _step: int, _parts: int) -> Frame:
        return Frame(self, [pa.table({"id": pa.array([number], pa.int64())}) for number in range(start, end)])

    def parquet(self, *urls: str) -> Frame:
        return Frame(self, [pq.read_table(url.removeprefix("file://")) for url in urls])

    def createDataFrame(self, rows: Any, schema: object = None) -> Frame:
        del schema
        return Frame(self, [rows if isinstance(rows, pa.Table) else self._schema.empty_table()])
