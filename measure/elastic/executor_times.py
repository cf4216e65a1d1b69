"""When the executors of an application came and went, as Spark's status page shows; the page must be enabled."""

from __future__ import annotations

import json
import math
import urllib.request
from collections.abc import Iterable
from datetime import UTC, datetime

from pyspark.sql import SparkSession

Times = tuple[float, float]
"""From when to when an executor was there, in seconds since the epoch."""


def executor_times(spark: SparkSession) -> list[Times]:
    """Return from when to when each executor was there; those that are still there have no end."""
    context = spark.sparkContext
    where = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/allexecutors"
    with urllib.request.urlopen(where) as answer:  # noqa: S310 - of this machine
        return [
            (_seconds(one["addTime"]), _seconds(one["removeTime"]) if "removeTime" in one else math.inf)
            for one in json.load(answer)
            if one["id"] != "driver"
        ]


def executor_seconds(times: Iterable[Times], begin: float, end: float) -> float:
    """Return the seconds that executors were there between two times, added up."""
    return sum(max(0.0, min(gone, end) - max(came, begin)) for came, gone in times)


def _seconds(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC).timestamp()
