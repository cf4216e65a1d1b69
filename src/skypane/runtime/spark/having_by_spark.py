"""Conditions on answers that only Spark evaluates: the filter of a static DataFrame, and what a stream makes of its query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from skypane.naming import shortened
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.having import SparkCondition
from skypane.operators.aggregates.spark_having import SparkHaving
from skypane.operators.query import Query
from skypane.operators.window_query import WINDOW_END, WINDOW_START
from skypane.plan import Plan
from skypane.runtime.spark.machine.session_kind import over_connect
from skypane.runtime.spark.projection import is_repeatable
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.types import ConfigError

_CLOCK: Final = re.compile(
    r"\b(now|curdate|current_date|current_time|current_timestamp|localtimestamp)\(", re.IGNORECASE
)
"""Functions of Spark that have one value in a run of a plan, and another in the next."""


def by_workers(query: Query, answers: pa.Schema) -> bool:
    """Return whether workers evaluate the condition on the answers of a query, or it has none."""
    return not isinstance(query, Aggregate) or query.choice.fits(answers)


def apart(query: Query, schema: pa.Schema) -> tuple[Query, str | None]:
    """Return the query without a condition that only Spark evaluates, and that condition; raise ConfigError with `top`.

    The rows of `top` are of those that meet the condition, and workers choose them before Spark has the answers.

    schema   schema of the rows: a condition that the types of the answers do not fit is SQL, which converts them
    """
    if (
        not isinstance(query, Aggregate)
        or query.choice.having is None
        or query.choice.fits(query.output_schema(schema))
    ):
        return query, None
    condition = query.choice.having
    if query.choice.top is not None:
        raise ConfigError(
            f"having={shortened(condition)!r} is evaluated by Spark, after the workers have chosen the rows of top=: write "
            f"comparisons of columns, numbers and texts, which the workers evaluate, or leave top= out"
        )
    return query.chosen_by(replace(query.choice, having=None)), condition


def met(answers: DataFrame, condition: str | None) -> DataFrame:
    """Return the answers for which a condition is true, all for None; raise ConfigError if Spark cannot evaluate it."""
    if condition is None:
        return answers
    with _named(condition):
        kept = answers.where(_column(condition))
        _ = kept.schema  # over Spark Connect it is read now
    return kept


@contextmanager
def _named(condition: str) -> Iterator[None]:
    """Raise ConfigError, with the condition, for Spark's errors."""
    try:
        yield
    except PySparkException as error:
        raise refusal(condition, str(error).strip().partition("\n")[0]) from error
    except AssertionError:  # PySpark's, which makes no Column without Java
        raise refusal(condition, "it needs Spark, and there is none") from None


def refusal(condition: str, said: str) -> ConfigError:
    """Return the error for a condition that Spark cannot evaluate on answers, with the line in which Spark says why."""
    return ConfigError(f"having={shortened(condition)!r}: Spark cannot evaluate it on the answers: {said}")


def filtered(plan: Plan, spark: SparkSession, schema: pa.Schema) -> Plan:
    """Return the plan of a stream whose query has no condition that only Spark evaluates: the plan has it beside the query.

    schema   schema of the rows

    Raises ConfigError if Spark cannot evaluate it on such answers, or would evaluate it otherwise when a batch is repeated.
    """
    query, condition = apart(plan.query, schema)
    if condition is None:
        return plan
    plan = replace(plan, query=query)
    column = condition.column if isinstance(condition, SparkCondition) else None
    if column is not None and over_connect(spark):
        raise ConfigError(
            f"having={shortened(condition)!r} is a Spark Column, which belongs to its session, and the answers of a stream "
            f"over Spark Connect are made in another one: write it as SQL"
        )
    frame = _no_answers(plan, spark, schema)
    met(frame, condition)
    with _named(condition):
        _check_repeatable(frame, condition)
    reads = tuple(name for name in frame.columns if not _can_evaluate(_without(frame, name), condition))
    having = SparkHaving(str(condition), reads, column, isinstance(condition, SparkCondition))
    plan = replace(plan, having=having)
    plan.validate(schema)
    return plan


def _no_answers(plan: Plan, spark: SparkSession, schema: pa.Schema) -> DataFrame:
    """Return a DataFrame of the columns of answers; of stays, it has the bounds of windows, too: Plan says why they are none."""
    answers = plan.validate(schema)
    bounds = [pa.field(name, answers.field(0).type) for name in (WINDOW_START, WINDOW_END)] if plan.stays else []
    # WINDOW_END is a column of stays already
    columns = {field.name: field for field in (*bounds, *answers)}
    return spark.createDataFrame([], spark_schema(pa.schema(list(columns.values()))))


def _check_repeatable(answers: DataFrame, condition: str) -> None:
    """Raise ConfigError if a repeated batch could have other answers, or if columns are not named."""
    column = _column(condition)
    sql = _sql(answers, column)
    if _CLOCK.search(sql) or not is_repeatable(answers, column):
        raise ConfigError(
            f"having={shortened(condition)!r} can have another value when a batch is repeated after a failure, and the batch "
            f"other answers: write an expression of the columns of the answers alone"
        )
    if _sql(answers.withColumn("_".join(answers.columns), sf.lit(0)), column) != sql:
        raise ConfigError(f"having={shortened(condition)!r} reads all columns by a star: name those that it needs")


def _sql(answers: DataFrame, column: Column) -> str:
    """Return the whole SQL of a column, as Spark shows it in a struct."""
    return answers.select(sf.struct(column)).columns[0]


def _without(answers: DataFrame, name: str) -> DataFrame:
    """Return a DataFrame without a column, and not one derived from `answers`: there Spark still finds it for a filter."""
    return answers.sparkSession.createDataFrame([], StructType([one for one in answers.schema if one.name != name]))


def _can_evaluate(answers: DataFrame, condition: str) -> bool:
    try:
        met(answers, condition)
    except ConfigError:
        return False
    return True


def _column(condition: str) -> Column:
    column = condition.column if isinstance(condition, SparkCondition) else sf.expr(condition)
    return cast("Column", column)
