"""Supported versions of PySpark, and replacements for functions that older ones lack."""

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
"""The first version that returns Arrow tables (toArrow) and accepts them (createDataFrame)."""


class VersionError(SkypaneError, ImportError):
    """PySpark is too old; the message names what needs a newer version, and how to install it."""


def need(oldest: str, what: str, version: str = pyspark.__version__) -> None:
    """Raise VersionError, whose message begins with `what`, if PySpark is older than `oldest`."""
    if _numbers(version) < _numbers(oldest):
        raise VersionError(
            f"{what} needs PySpark {oldest} or newer, found {version}: run pip install 'pyspark>={oldest}'"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def partitioned(rows: DataFrame, partitions: int, partition: Column) -> DataFrame:
    """Return `rows`, with each row in the partition whose number is `partition`.

    Spark 4.0 has no repartitionById: there, rows with the same number share a partition, and two numbers may share one.
    """
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(partitions, partition)
    return rows.repartition(partitions, partition)


def arrow_columns(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of Spark columns without a session, with times in UTC.

    Newer versions of PySpark require the zone by name; older ones use UTC.
    """
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    converted: pa.Schema = to_arrow_schema(schema, **zone)  # type: ignore[arg-type]
    return converted
