"""Which thread of Java runs the calls of a thread of Python."""

from __future__ import annotations

from pyspark.sql import SparkSession


def threads_are_pinned(spark: SparkSession) -> bool:
    """Return whether each thread of Python has one in Java, as by default: see PYSPARK_PIN_THREAD in PySpark's docs."""
    from py4j.clientserver import ClientServer  # noqa: PLC0415 - PySpark's package `pyspark-client` comes without Py4J

    return isinstance(spark.sparkContext._gateway, ClientServer)  # noqa: SLF001 - as PySpark itself
