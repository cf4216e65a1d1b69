"""Conditions on answers that only Spark evaluates: on the DataFrame of the answers, after the workers have made them."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from skypane.naming import shortened
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.having import SparkCondition
from skypane.operators.query import Query
from skypane.types import ConfigError


def apart(query: Query) -> tuple[Query, str | None]:
    """Return the query without a condition that only Spark evaluates, and that condition; raise ConfigError with `top`.

    The rows of `top` are of those that meet the condition, and workers choose them before Spark has the answers.
    """
    if not isinstance(query, Aggregate) or query.choice.by_spark is None:
        return query, None
    condition = query.choice.by_spark
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
    try:
        column = condition.column if isinstance(condition, SparkCondition) else sf.expr(condition)
        kept = answers.where(cast("Column", column))
        _ = kept.schema  # over Spark Connect it is read now
    except PySparkException as error:
        said = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"having={shortened(condition)!r}: Spark cannot evaluate it on the answers: {said}"
        ) from error
    return kept
