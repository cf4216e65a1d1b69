"""Shards in a stateful operator of a streaming query, whose state Spark keeps at one executor.

The state itself has only the number of the next step, and the worker keeps the shard: the least that such an operator
has to do. A request is a file of the query's source, with a line for each shard.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any, Final

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState

from measure.residence.journal import Journal
from measure.residence.one_trip import Request, Response

PATIENCE: Final = 300.0
"""Seconds after which a query that has not answered has failed."""
_TRIED: Final = 1_000
"""Numbers among which each partition of a shuffle finds one."""


class StatefulOperator:
    """Sends requests through a streaming query; `repeated` counts steps that workers did once more."""

    def __init__(self, spark: SparkSession, journal: Journal, shards: int) -> None:
        self._journal, self._shards, self.repeated = journal, shards, 0
        self._reports: Queue[list[int]] = Queue()
        self._keys = keys_of_partitions(spark, shards)
        self._folder = tempfile.TemporaryDirectory(prefix="skypane-bench-")
        self._inbox = Path(self._folder.name) / "in"
        self._inbox.mkdir()
        self._query = (
            self._answers(spark)
            .writeStream.foreachBatch(self._note)
            .option("checkpointLocation", f"{self._folder.name}/checkpoint")
            .start()
        )

    def __call__(self, request: Request) -> list[Response]:
        self._journal.ask(request)
        lines = [f"{key} {shard} {request.step}" for shard, key in enumerate(self._keys)]
        draft = Path(self._folder.name) / "draft"
        draft.write_text("\n".join(lines))
        draft.rename(self._inbox / f"{request.step}.txt")
        self.repeated += sum(self._reports.get(timeout=PATIENCE))
        self._query.processAllAvailable()  # its commit is a part of the step
        return [self._journal.response(shard, request.step) for shard in range(self._shards)]

    def close(self) -> None:
        """Stop the query."""
        self._query.stop()
        self._folder.cleanup()

    def _answers(self, spark: SparkSession) -> DataFrame:
        journal = self._journal

        def respond(_: tuple[int], rows: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
            for shard, step in ((int(row["shard"]), int(row["step"])) for part in rows for _, row in part.iterrows()):
                repeated = journal.answer(shard, step)
                state.update((step + 1,))
                yield pd.DataFrame({"repeated": [repeated]})

        names = ("key", "shard", "step")
        lines = spark.readStream.text(str(self._inbox)).selectExpr("split(value, ' ') as word")
        numbers = lines.selectExpr(*(f"cast(word[{at}] as int) as {name}" for at, name in enumerate(names)))
        return numbers.groupBy("key").applyInPandasWithState(
            respond, "repeated long", "step long", "append", "NoTimeout"
        )

    def _note(self, reports: DataFrame, _: int) -> None:
        found: list[Any] = reports.collect()
        if found:
            self._reports.put([row.repeated for row in found])


def keys_of_partitions(spark: SparkSession, partitions: int) -> list[int]:
    """Return an integer for each partition of a shuffle that Spark assigns to it."""
    at = f"pmod(hash(cast(id as int)), {partitions}) as at"
    found = {row["at"]: row["id"] for row in spark.range(_TRIED).selectExpr("id", at).collect()}
    return [found[partition] for partition in range(partitions)]
