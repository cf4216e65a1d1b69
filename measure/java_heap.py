"""What the memory of the driver's Java is used for."""

from __future__ import annotations

from pyspark.sql import SparkSession


def live_bytes(spark: SparkSession) -> int:
    """Return the bytes of the driver's Java heap that are in use after a garbage collection."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - the only access to Java's heap
    assert jvm is not None
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def parts(spark: SparkSession) -> dict[str, int]:
    """Return the bytes that Java has taken from the system for its heap, and for classes and compiled code ("code")."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - as above
    assert jvm is not None
    beans = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    heap, other = beans.getHeapMemoryUsage(), beans.getNonHeapMemoryUsage()
    return {"heap": int(heap.getCommitted()), "code": int(other.getCommitted())}
