"""Jobs that may wait for ever: where a cluster grants no executor, Spark says so in its log and goes on waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Timer

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_GROUP = "skypane: cancelled after a while"


@contextmanager
def cancelled_after(spark: SparkSession, seconds: float) -> Iterator[None]:
    """Cancel the jobs within after so many seconds, as a TimeoutError: where no executor is granted they wait for ever."""
    context, late = spark.sparkContext, Event()

    def give_up() -> None:
        late.set()
        context.cancelJobGroup(_GROUP)

    context.setJobGroup(_GROUP, "is there an executor?", interruptOnCancel=True)
    timer = Timer(seconds, give_up)
    timer.start()
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if not late.is_set():
            raise
        raise TimeoutError(f"no task has ended within {seconds:g} s, the cluster grants no executor") from error
    finally:
        timer.cancel()
