"""Tasks that find their shard in the Python worker of the last step: the partitions of a persisted table have a place.

Spark prefers the executor that holds a task's cached partition, and reuses the Python worker of an executor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from measure.residence.journal import Journal
from measure.residence.one_trip import Request, Response


class Tasks(ABC):
    """Sends requests by jobs with a task for each shard; `repeated` counts steps that workers did once more."""

    def __init__(self, spark: SparkSession, journal: Journal, shards: int) -> None:
        self._journal, self._shards, self.repeated = journal, shards, 0
        self._persist(spark)

    def __call__(self, request: Request) -> list[Response]:
        self._journal.ask(request)
        self.repeated += sum(self._run(request.step))
        return [self._journal.response(shard, request.step) for shard in range(self._shards)]

    @abstractmethod
    def close(self) -> None:
        """Free what is persisted."""

    @abstractmethod
    def _persist(self, spark: SparkSession) -> None:
        """Persist a table with one row, the number of a shard, in each of its partitions."""

    @abstractmethod
    def _run(self, step: int) -> list[int]:
        """Let all shards answer; return how many steps each has repeated."""


class TasksOfDataFrame(Tasks):
    """Tasks at the partitions of a persisted DataFrame."""

    def close(self) -> None:
        self._table.unpersist(blocking=True)

    def _persist(self, spark: SparkSession) -> None:
        self._table = spark.range(0, self._shards, 1, self._shards).persist()
        self._table.count()

    def _run(self, step: int) -> list[int]:
        journal = self._journal

        def respond(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for shard in (number for batch in batches for number in batch.column(0).to_pylist()):
                yield pa.RecordBatch.from_pydict({"repeated": [journal.answer(shard, step)]})

        return [row.repeated for row in self._table.mapInArrow(respond, "repeated long").collect()]


class TasksOfRdd(Tasks):
    """Tasks at the partitions of a persisted RDD."""

    def close(self) -> None:
        self._numbers.unpersist(blocking=True)

    def _persist(self, spark: SparkSession) -> None:
        self._numbers = spark.sparkContext.parallelize(range(self._shards), self._shards).persist()
        self._numbers.count()

    def _run(self, step: int) -> list[int]:
        journal = self._journal
        return self._numbers.map(lambda shard: journal.answer(shard, step)).collect()
