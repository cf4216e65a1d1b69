"""How Spark writes its own files of a checkpoint: on a local disk, without starting programs for them.

Spark writes each file under a passing name and renames it, through Hadoop's FileContext. On a local disk, without Hadoop's
native library, that starts a program of the system (`chmod`, `readlink`) some fifty times a micro-batch, for more than a
third of the time of a small one. Hadoop's FileSystem does the same two steps inside Java, with the same one rename.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from skypane.places import Place

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
"""The setting of Spark; a query keeps what it was when it started."""

_PACKAGE = "org.apache.spark.sql.execution.streaming"
_CLASS = "FileSystemBasedCheckpointFileManager"


@contextmanager
def local_files(spark: SparkSession, checkpoint: Place) -> Iterator[None]:
    """Let queries that start meanwhile write to a `checkpoint` on a local disk as above; other places are left to Spark.

    What the session says of it stands.
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
    """Return the class that goes through Hadoop's FileSystem, None for a Spark in which nobody has looked for it.

    >>> manager_of("4.0.1"), manager_of("5.0.0")
    ('org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager', None)
    """
    major, minor = version.split(".")[:2]
    if major != "4":
        return None
    package = _PACKAGE if minor == "0" else f"{_PACKAGE}.checkpointing"
    return f"{package}.{_CLASS}"
