"""Build the settings of a job from a plan and the user's arguments, for stream() and continuous_skyline()."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.control import splitting as policies
from skypane.control.parallelism import Workers
from skypane.control.splitting import Splitting
from skypane.operators.entry.reject_reasons import REASON
from skypane.plan import Plan
from skypane.runtime.spark.calibration import costs_of
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.late_rows import schema_of
from skypane.runtime.spark.machine.session import parallelism
from skypane.runtime.spark.sinks.current_front import Current
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.sinks.sink_arguments import apart, sink, sinks
from skypane.runtime.spark.spark_schema import spark_schema
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
) -> JobSettings:
    """Return the settings of a job over `rows` of Arrow schema `schema`; raise ConfigError if they are invalid."""
    answers = plan.output_schema(schema)
    spark_schema(answers)  # raises for a type that Spark lacks: a sink may need a DataFrame of the answers
    if late is not None and REASON in schema.names:
        raise ConfigError(f"late rows get a column {REASON!r} with the reason: rename yours")
    output_sink, late_sink = sinks(output, late, answers, schema_of(schema))
    return JobSettings(
        plan=plan,
        schema=schema,
        answer_schema=answers,
        # Absolute, because Java resolves a relative path against the folder in which it was started.
        checkpoint=DocumentStore.at(checkpoint or "", "checkpoint").root,
        output=output_sink,
        late=late_sink,
        splitting=policies.splitting(splitting),
        costs=costs_of(rows.sparkSession),
        front=None if front is None else _front_sink(front, schema, {"output": output_sink, "late": late_sink}),
    )


def workers_of(rows: DataFrame, plq: int | None, wlq: int | None) -> Workers:
    """Return the numbers of workers, with the default parallelism in place of None."""
    cores = parallelism(rows.sparkSession)
    return Workers(cores if plq is None else plq, cores if wlq is None else wlq)


def _front_sink(front: Output, rows: pa.Schema, others: dict[str, Sink | None]) -> Sink:
    front_sink = Current(os.fspath(front)) if isinstance(front, str | os.PathLike) else sink(front, "front")
    front_sink.check(rows)
    apart({"front": front_sink, **others})
    return front_sink
