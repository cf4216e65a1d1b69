"""A column as a user writes it: by its name, as SQL, or as a Spark Column; Spark reads all but plain names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard

from skypane.preference.written import SparkColumn, Written
from skypane.types import ConfigError

ColumnLike: TypeAlias = str | SparkColumn
"""A column's name, an expression in SQL such as "price * 2", or a Spark Column."""

Columns: TypeAlias = ColumnLike | Sequence[ColumnLike]
"""One column or several."""


def column_name(column: object, argument: str) -> str:
    """Return the name of a column, or an expression in its place; raise ConfigError, naming `argument`, if it is none.

    An identifier is a name. Another text, or a Spark Column, is a Written: Spark says what it is, once rows are known.
    """
    if isinstance(column, str):
        return column if isinstance(column, Written) or column.isidentifier() else Written(column, argument)
    if is_spark_column(column):
        return Written(_shown(column), argument, column)
    raise ConfigError(f"{argument} must name a column, got {column!r}")


def quoted_column(expression: ColumnLike, argument: str) -> Written:
    """Return SQL, or a Spark Column, as a text of another syntax: the name, in quotes, of the column that Spark computes."""
    if isinstance(expression, str):
        return Written(expression, argument, None, quoted=True)
    if is_spark_column(expression):
        return Written(_shown(expression), argument, expression, quoted=True)
    raise ConfigError(f"{argument} must be a text or a Spark Column, got {expression!r}")


def is_spark_column(value: object) -> TypeGuard[SparkColumn]:
    """Return whether a value is a Spark Column, classic or over Spark Connect."""
    return hasattr(value, "eqNullSafe")


def _shown(column: SparkColumn) -> str:
    return str(column).removeprefix("Column<'").removesuffix("'>")
