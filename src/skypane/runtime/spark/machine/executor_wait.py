"""A timeout for jobs: if a cluster grants no executor, Spark only logs it and waits forever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from typing import TypeVar

from pyspark.sql import SparkSession

from skypane.runtime.background import in_background

T = TypeVar("T")


def ended_within(spark: SparkSession, seconds: float, job: Callable[[], T]) -> T:
    """Return the result of `job`, which runs jobs of Spark; raise TimeoutError if it has not ended after `seconds`.

    The error says whether any task has started. The job then goes on in a thread that ends with the process.
    """
    result = in_background(job)
    if wait([result], seconds).not_done:
        what = (
            "the first task is still running"
            if _started(spark)
            else "no task has started: the cluster grants no executor"
        )
        raise TimeoutError(f"after {seconds:g} s {what}")
    return result.result()


def _started(spark: SparkSession) -> bool:
    """Return whether an executor has started a task of the active stages."""
    tracker = spark.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return any(stage.numActiveTasks + stage.numCompletedTasks for stage in stages if stage is not None)
