"""Expressions in a query, computed by Spark: each becomes a column of the rows, before they are transferred to Python.

A Spark Column that is a column of the rows, as it is, stays one, as the text of its name does: then the rows, and with
them Spark's plan, are those that came in. Public methods alone show what an expression is: the schema of a selection
has the name that Spark gives it, and, in a struct around it, its whole SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import TypeVar, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from skypane.naming import backticked, nearest, shortened
from skypane.preference.written import Key, Written, as_alias, expressions, name_in, named
from skypane.runtime.spark.spark_schema import arrow_schema
from skypane.types import ConfigError

T = TypeVar("T")

_NOT_REPEATABLE = "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION"
"""The condition of Spark's error for an aggregate of an expression that may have another value each time."""


@dataclass(frozen=True)
class Projection:
    """Rows that have a column for each expression, their Arrow schema, and the names of the columns that were added."""

    rows: DataFrame
    schema: pa.Schema
    computed: tuple[str, ...]
    names: Mapping[Key, str]

    def of(self, value: T) -> T:
        """Return a query, or the name of a column, with names of columns in place of expressions."""
        resolved: T = named(value, self.names)
        return resolved


def projected(rows: DataFrame, schema: pa.Schema, *values: object) -> Projection:
    """Return rows, whose Arrow schema is `schema`, with a column for each expression in queries and other arguments.

    Raises ConfigError, naming the argument, for an expression that Spark cannot compute from these rows.
    """
    added = _Added(rows)
    for written in expressions(values):
        added.add(written)
    # In the order of their names, because a checkpoint records the order of columns, and not that of a query's parts.
    columns = dict(sorted(added.columns.items()))
    if columns:
        rows = rows.withColumns(columns)
        schema = arrow_schema(rows)
    return Projection(rows, schema, tuple(columns), added.names)


def is_repeatable(rows: DataFrame, column: Column) -> bool:
    """Return whether an expression over rows is deterministic to Spark."""
    try:
        _ = rows.agg(sf.count(column)).schema
    except PySparkException as error:
        return error.getCondition() != _NOT_REPEATABLE
    return True


class _Added:
    """The columns that the rows get: one for each different expression, under a name that no other column has.

    names    the name of the column of each expression
    columns  the added columns, by name
    """

    def __init__(self, rows: DataFrame) -> None:
        self.names: dict[Key, str] = {}
        self.columns: dict[str, Column] = {}
        self._rows = rows

    def add(self, written: Written) -> None:
        """Name the column of an expression: one of the rows, one that was added, or a new one."""
        if written.key in self.names:
            return
        if written.column is None and written.sql in self._rows.columns:
            self.names[written.key] = written.sql
            return
        try:
            self.names[written.key] = self._name_of(written)
        except PySparkException as error:
            raise _refusal(written, self._rows, error) from error
        except AssertionError:  # PySpark's, which makes no Column without Java
            raise ConfigError(
                f"{written.argument}: {shortened(written.sql)!r} needs Spark, and there is none"
            ) from None

    def _name_of(self, written: Written) -> str:
        column = sf.expr(written.sql) if written.column is None else cast("Column", written.column)
        called = self._rows.select(column).columns
        if len(called) != 1:
            raise ConfigError(f"{written.argument}: {shortened(written.sql)!r} is {len(called)} columns: write one")
        if written.column is None and (meant := as_alias(written.sql, called[0])):
            raise _missing(written, self._rows, f"; to call an expression so, write {shortened(meant)!r}")
        inside = self._in_a_struct(column)  # refuses what would change the number of rows, such as explode(tags)
        sql = inside.names[0].removeprefix("struct(").removesuffix(")")
        name = called[0] if written.column is not None else name_in(written.sql)
        found = self._of_the_rows(called[0], inside)
        if found is None:
            self._check_repeatable(written, column)
        return found or self._added(column, _plain(name), _plain(sql))

    def _check_repeatable(self, written: Written, column: Column) -> None:
        """Raise ConfigError if rows of a stream could have another value when Spark reads their batch again."""
        if self._rows.isStreaming and not is_repeatable(self._rows, column):
            raise ConfigError(
                f"{written.argument}: {shortened(written.sql)!r} is not deterministic to Spark: a batch that is read "
                f"again after a failure could have other values, and other answers. If it always has the same value "
                f"for a row, add it by rows.withColumn(...), and name that column"
            )

    def _of_the_rows(self, name: str, inside: StructType) -> str | None:
        """Return the name of the column of the rows that an expression is, as it is; None if it is none.

        Spark may call another one so, too: a cast, a literal, a field of a struct, or under an alias.
        """
        same = [one for one in self._rows.columns if one.lower() == name.lower()]
        if not same or self._in_a_struct(sf.col(backticked(name))) != inside:
            return None
        return name if name in same else same[0]

    def _in_a_struct(self, column: Column) -> StructType:
        """Return the schema of `column` in a struct: Spark shows its whole SQL there, and names fields by columns and aliases."""
        return self._rows.select(sf.struct(column)).schema

    def _added(self, column: Column, name: str, sql: str) -> str:
        """Return the name of the added column: `name`, or one made of `sql` if another column is called so."""
        for chosen in chain((name, sql), (sql + "_" * more for more in count(1))):
            if self._is(chosen, column):
                return chosen
            if not self._taken(chosen):
                break
        _ = self._rows.withColumns({chosen: column}).schema  # refuses what a selection alone allows, such as sum(price)
        self.columns[chosen] = column
        return chosen

    def _taken(self, name: str) -> bool:
        """Return whether a column has a name; in Spark, upper and lower case are the same."""
        return name.lower() in {one.lower() for one in (*self._rows.columns, *self.columns)}

    def _is(self, name: str, column: Column) -> bool:
        """Return whether `column` is the added column `name`: one with the same SQL is not, if that shows a text as a name."""
        other = self.columns.get(name)
        return other is not None and self._rows.select(column).sameSemantics(self._rows.select(other))


def _refusal(written: Written, rows: DataFrame, error: PySparkException) -> ConfigError:
    said = str(error).strip().partition("\n")[0]
    if written.quoted:
        return ConfigError(f"{written.argument}: Spark cannot compute {shortened(written.sql)!r}: {said}")
    return _missing(written, rows, f", and Spark cannot compute it: {said}")


def _missing(written: Written, rows: DataFrame, reason: str) -> ConfigError:
    near = nearest(written.sql, rows.columns, most=3)
    hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
    return ConfigError(f"{written.argument}: column {shortened(written.sql)!r} does not exist{hint}{reason}")


def _plain(name: str) -> str:
    """Return a name without dots and backticks, in which PySpark would read a path."""
    return name.replace(".", "_").replace("`", "")
