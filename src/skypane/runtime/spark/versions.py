"""Which versions of PySpark there are, and what the older ones lack."""

from __future__ import annotations

import re
from inspect import signature

import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

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


def arrow_columns(schema: StructType) -> pa.Schema:
    """Return Spark's columns as Arrow has them, times in UTC, where no session is at hand to ask.

    Newer versions want the zone by name, older ones take UTC by themselves.
    """
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    found: pa.Schema = to_arrow_schema(schema, **zone)  # type: ignore[arg-type]
    return found
