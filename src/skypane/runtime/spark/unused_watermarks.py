"""Watermarks of Spark before a query that have no effect: no operator of Spark uses them, and skypane has policies."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from skypane.runtime.spark.machine.session_kind import kind_of

log = logging.getLogger(__name__)

_STATEFUL = ("Aggregate", "Deduplicate", "Distinct", "State")
"""Parts of the names of Spark's operators that drop late rows by a watermark, besides joins of two streams."""


def warn_of_unused_watermarks(rows: DataFrame) -> None:
    """Log a warning for each withWatermark of `rows` that no operator of Spark after it uses."""
    plan = kind_of(rows.sparkSession).plan_of(rows)
    if plan is None:
        return
    for delay in dict.fromkeys(_unused(plan)):
        log.warning(
            "withWatermark(..., %r) has no effect here, as no operator of Spark uses it before the query: write "
            "progress=sp.Watermark(%r) instead",
            delay,
            delay,
        )


def _unused(plan: Any) -> Iterator[str]:
    """Yield the delays of the watermarks between a plan's end and its last operators with state."""
    name, inputs = plan.nodeName(), _inputs(plan)
    if any(part in name for part in _STATEFUL) or (name == "Join" and all(one.isStreaming() for one in inputs)):
        return
    if name == "EventTimeWatermark":
        yield str(plan.delay())
    for one in inputs:
        yield from _unused(one)


def _inputs(plan: Any) -> list[Any]:
    children = plan.children()
    return [children.apply(number) for number in range(children.size())]
