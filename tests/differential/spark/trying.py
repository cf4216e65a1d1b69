"""Cases on one Spark session, several at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from pyspark.sql import SparkSession
from tests.differential.spark.checking import failure
from tests.differential.spark.runs import Run, runs
from tests.differential.spark.session import started


@dataclass(frozen=True)
class Trying:
    """Cases from a seed on, of one kind or of all, so many at once; in the session that is there, or a new one."""

    seed: int
    kind: str | None = None
    jobs: int = 3

    def until(self, seconds: float, cases: int | None) -> Iterator[tuple[Run, str | None]]:
        """Yield cases in order, each with how it differs, None: not at all; none begins after so many seconds."""
        spark, began = started(), time.monotonic()
        waiting: deque[tuple[Run, Future[str | None]]] = deque()
        with ThreadPoolExecutor(self.jobs) as pool:
            for run in islice(runs(self.seed, self.kind), cases):
                if len(waiting) == self.jobs:
                    yield _done(waiting)
                if time.monotonic() - began > seconds:
                    break
                waiting.append((run, pool.submit(_tried, spark, run)))
            while waiting:
                yield _done(waiting)


def _done(waiting: deque[tuple[Run, Future[str | None]]]) -> tuple[Run, str | None]:
    run, future = waiting.popleft()
    return run, future.result()


def _tried(spark: SparkSession, run: Run) -> str | None:
    try:
        return failure(spark, run)
    except Exception as error:  # noqa: BLE001 - whatever is raised is a failure of the case
        return f"{type(error).__name__}: {error}"
