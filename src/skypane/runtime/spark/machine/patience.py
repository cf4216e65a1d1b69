"""Jobs that may wait for ever: where a cluster grants no executor, Spark says so in its log and goes on waiting."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from typing import TypeVar

from pyspark.sql import SparkSession

from skypane.runtime.background import in_background

T = TypeVar("T")


def ended_within(spark: SparkSession, seconds: float, job: Callable[[], T]) -> T:
    """Return what `job`, which runs jobs of Spark's, returns; TimeoutError if it has not ended after so many seconds.

    The error says whether any task has started. The job is left to itself then, in a thread that ends with the process.
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
    """Whether an executor has taken a task of the stages that run now."""
    tracker = spark.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return any(stage.numActiveTasks + stage.numCompletedTasks for stage in stages if stage is not None)
