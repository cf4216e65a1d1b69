"""What the doors of streams share: a plan and a user's arguments become the setting of a job."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.control import splitting as policies
from skypane.control.splitting import Splitting
from skypane.control.workers import Workers
from skypane.operators.entry.reasons import REASON
from skypane.plan import Plan
from skypane.runtime.spark.calibration import costs_of
from skypane.runtime.spark.engine.rejects import schema_of
from skypane.runtime.spark.engine.setting import Setting
from skypane.runtime.spark.machine.session import parallelism
from skypane.runtime.spark.schema import spark_schema
from skypane.runtime.spark.sinks.current import Current
from skypane.runtime.spark.sinks.door import apart, sink, sinks
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.store import Store
from skypane.types import ConfigError

Output: TypeAlias = "str | os.PathLike[str] | Sink | Callable[[DataFrame, int], None]"


def setting_of(
    rows: DataFrame,
    schema: pa.Schema,
    plan: Plan,
    *,
    checkpoint: str | os.PathLike[str] | None,
    output: Output | None,
    late: Output | None,
    splitting: str | Splitting,
    front: Output | None = None,
) -> Setting:
    """Return what a job over `rows`, of `schema` in Arrow, needs; ConfigError for what cannot be."""
    answers = plan.output_schema(schema)
    spark_schema(answers)  # a sink may want a DataFrame of them
    if late is not None and REASON in schema.names:
        raise ConfigError(f"late rows get a column {REASON!r} that says why: rename yours")
    taker, late_taker = sinks(output, late, answers, schema_of(schema))
    return Setting(
        plan=plan,
        schema=schema,
        answer_schema=answers,
        # Absolute, because Java resolves a relative path against the folder that it was started in.
        checkpoint=Store.at(checkpoint or "", "checkpoint").root,
        output=taker,
        late=late_taker,
        splitting=policies.splitting(splitting),
        costs=costs_of(rows.sparkSession),
        front=None if front is None else _front_sink(front, schema, {"output": taker, "late": late_taker}),
    )


def workers_of(rows: DataFrame, plq: int | None, wlq: int | None) -> Workers:
    """Return the numbers of workers asked for, the default parallelism where there is none."""
    cores = parallelism(rows.sparkSession)
    return Workers(cores if plq is None else plq, cores if wlq is None else wlq)


def _front_sink(front: Output, rows: pa.Schema, others: dict[str, Sink | None]) -> Sink:
    taker = Current(os.fspath(front)) if isinstance(front, str | os.PathLike) else sink(front, "front")
    taker.check(rows)
    apart({"front": taker, **others})
    return taker
