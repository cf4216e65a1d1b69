"""What lives in the heap of Java."""

from __future__ import annotations

from pyspark.sql import SparkSession


def live_bytes(spark: SparkSession) -> int:
    """Return the bytes of the driver's Java heap that are in use after a garbage collection."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - the only access to Java's heap
    assert jvm is not None
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())
