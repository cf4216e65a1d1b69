"""A timeout for jobs: if a cluster grants no executor, Spark only logs it and waits forever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import wait
from typing import Final, TypeVar

from pyspark.sql import SparkSession

from skypane.runtime.background import in_background
from skypane.runtime.spark.machine.session_kind import kind_of

T = TypeVar("T")

_WAITING: Final[Mapping[bool | None, str]] = {
    True: "the first task is still running",
    False: "no task has started: the cluster grants no executor",
    None: "the job has not ended; only the server knows whether a task has started",
}
"""The reason why a job has not ended, by whether a task of it has started."""


def ended_within(spark: SparkSession, seconds: float, job: Callable[[], T]) -> T:
    """Return the result of `job`, which runs jobs of Spark; raise TimeoutError if it has not ended after `seconds`.

    The error says whether any task has started. The job then goes on in a thread that ends with the process.
    """
    result = in_background(job)
    if wait([result], seconds).not_done:
        raise TimeoutError(f"after {seconds:g} s {_WAITING[kind_of(spark).tasks_started()]}")
    return result.result()
