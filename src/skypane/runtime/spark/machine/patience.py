"""Jobs that may wait for ever: where a cluster grants no executor, Spark says so in its log and goes on waiting."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NoReturn, TypeVar

from pyspark.sql import SparkSession

T = TypeVar("T")


def ended_within(spark: SparkSession, seconds: float, job: Callable[[], T]) -> T:
    """Return what `job`, which runs jobs of Spark's, returns; TimeoutError if it has not ended after so many seconds.

    The error says whether any task has started. The job is left to itself then, in a thread that ends with the process.
    """
    ended: SimpleQueue[Callable[[], T]] = SimpleQueue()

    def run() -> None:
        try:
            result = job()
        except Exception as error:  # noqa: BLE001  # raised again by whoever waits
            ended.put(_raising(error))
        else:
            ended.put(lambda: result)

    Thread(target=run, daemon=True).start()
    try:
        outcome = ended.get(timeout=seconds)
    except Empty:
        what = (
            "the first task is still running"
            if _started(spark)
            else "no task has started: the cluster grants no executor"
        )
        raise TimeoutError(f"after {seconds:g} s {what}") from None
    return outcome()


def _raising(error: Exception) -> Callable[[], NoReturn]:
    def outcome() -> NoReturn:
        raise error

    return outcome


def _started(spark: SparkSession) -> bool:
    """Whether an executor has taken a task of the stages that run now."""
    tracker = spark.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return any(stage.numActiveTasks + stage.numCompletedTasks for stage in stages if stage is not None)
