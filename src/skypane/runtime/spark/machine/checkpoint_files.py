"""Let Spark write its own files of a checkpoint on a local disk without starting system programs.

Spark writes each file under a temporary name and renames it, through Hadoop's FileContext. On a local disk, without
Hadoop's native library, this starts a system program (`chmod`, `readlink`) about fifty times per micro-batch, which
takes more than a third of the time of a small one. Hadoop's FileSystem does the same two steps inside Java, with one
rename.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from skypane.locations import Location

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
"""Spark's setting; a query keeps the value with which it started."""

_PACKAGE = "org.apache.spark.sql.execution.streaming"
_CLASS = "FileSystemBasedCheckpointFileManager"


@contextmanager
def local_files(spark: SparkSession, checkpoint: Location) -> Iterator[None]:
    """Let queries that start in this context write a `checkpoint` on a local disk through Hadoop's FileSystem.

    Checkpoints elsewhere, and sessions that have the setting already, are left as they are.
    """
    manager = manager_of(spark.version)
    if manager is None or not checkpoint.is_local or spark.conf.get(MANAGER, None) is not None:
        yield
        return
    spark.conf.set(MANAGER, manager)
    try:
        yield
    finally:
        spark.conf.unset(MANAGER)


def manager_of(version: str) -> str | None:
    """Return the class that uses Hadoop's FileSystem; None for a version of Spark whose class name is not known.

    >>> manager_of("4.0.1"), manager_of("5.0.0")
    ('org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager', None)
    """
    major, minor = version.split(".")[:2]
    if major != "4":
        return None
    package = _PACKAGE if minor == "0" else f"{_PACKAGE}.checkpointing"
    return f"{package}.{_CLASS}"
