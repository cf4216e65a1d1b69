"""The descriptions of a batch's jobs in Spark's UI: Spark's own, and a line with the batch and its step.

Spark describes all jobs of a batch alike, by the name and ids of the query and its own number of the batch. The group of
the jobs is the run of the query, by which Spark cancels them when it stops; it is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from pyspark.sql import SparkSession

from skypane.runtime.spark.machine.java_errors import Py4JError
from skypane.runtime.spark.machine.java_threads import threads_are_pinned
from skypane.runtime.spark.machine.session_kind import over_connect

DESCRIPTION: Final = "spark.job.description"
"""The property of a thread in Java with which Spark describes the jobs that it starts."""


@contextmanager
def described_jobs(spark: SparkSession, batch_id: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that describes the jobs from now on by a step of the batch; afterwards they are as before.

    A client of Spark Connect has no way to describe jobs. Without a thread in Java for each thread of Python, a description
    could reach jobs of other threads, so there is none.
    """
    if over_connect(spark) or not threads_are_pinned(spark):
        yield lambda _: None
        return
    java = spark.sparkContext._jsc  # noqa: SLF001 - PySpark's own calls fail after spark.stop() in another thread
    before = java.getLocalProperty(DESCRIPTION)

    def describe_by(text: str | None) -> None:
        with suppress(Py4JError, ConnectionError):  # Java has ended, which the step itself reports
            java.setLocalProperty(DESCRIPTION, text)  # None removes it

    def describe(step: str) -> None:
        own = f"skypane: batch {batch_id}, {step}"
        describe_by(own if before is None else f"{before}\n{own}")

    try:
        yield describe
    finally:
        describe_by(before)
