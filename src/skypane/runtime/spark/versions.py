"""Which versions of PySpark there are, and what the older ones lack."""

from __future__ import annotations

import re

import pyspark
from pyspark.sql import Column, DataFrame

from skypane.types import SkypaneError

OLDEST = "4.0"
"""The first that hands over Arrow tables (toArrow) and takes them (createDataFrame)."""


class VersionError(SkypaneError, ImportError):
    """PySpark is too old; the message says for what, and how to get another."""


def need(oldest: str, what: str, version: str = pyspark.__version__) -> None:
    """Raise VersionError, which begins with `what`, if PySpark is older than `oldest`."""
    if _numbers(version) < _numbers(oldest):
        raise VersionError(
            f"{what} needs PySpark {oldest} or newer, found {version}: run pip install 'pyspark>={oldest}'"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def partitioned(rows: DataFrame, partitions: int, partition: Column) -> DataFrame:
    """Return `rows`, each in the partition with the number `partition`.

    Spark 4.0 has no repartitionById: there, rows of one number lie together, and two numbers may share a partition.
    """
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(partitions, partition)
    return rows.repartition(partitions, partition)
