"""Whether the process that runs Spark still answers: Java beside this process, or a server of Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from skypane.runtime.spark.machine.session_kind import kind_of
from skypane.types import SkypaneError


@contextmanager
def spark_there(spark: SparkSession) -> Iterator[None]:
    """Raise SkypaneError, in one sentence, if Spark's process has ended; other errors, such as a sink's, propagate."""
    try:
        yield
    except Exception as error:
        kind = kind_of(spark)
        if not kind.may_be_gone(error) or _answers(spark):
            raise
        raise SkypaneError(kind.gone) from error


def _answers(spark: SparkSession) -> bool:
    """Return whether Spark's process answers."""
    try:
        spark.conf.get("spark.app.name", None)  # a call that reaches it; PySpark caches spark.version
    except Exception as error:
        if kind_of(spark).may_be_gone(error):
            return False
        raise
    return True
