"""The aggregate functions as a user writes them: sp.count(), sp.sum("amount"), sp.max_by("name", "price").

Each takes `where`, a condition on the rows that it looks at: sp.count(where="price > 100").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from skypane.operators.aggregates.functions import Chosen, Counted, Function, Kept, Mean, Spread, Sum
from skypane.operators.aggregates.sketches import ApproxDistinct, ApproxQuantile
from skypane.operators.aggregates.wide import Accumulator, Distinct, InOrder
from skypane.preference import ColumnLike
from skypane.preference.column import column_name
from skypane.types import ConfigError


def count(column: ColumnLike | None = None, *, where: str | None = None) -> Function:
    """How many rows; or how many in which `column` is not null."""
    return Counted(where, None if column is None else column_name(column, "count"))


def count_if(condition: str) -> Function:
    """How many rows for which a condition is true."""
    return Counted(condition)


def sum(column: ColumnLike, *, where: str | None = None) -> Function:  # noqa: A001 - as SQL calls it
    """Sum of numbers; of integers it is one of 64 bits, and too large a sum an error, as in Spark."""
    return Sum(where, column_name(column, "sum"))


def avg(column: ColumnLike, *, where: str | None = None) -> Function:
    """Arithmetic mean."""
    return Mean(where, column_name(column, "avg"))


def min(column: ColumnLike, *, where: str | None = None) -> Function:  # noqa: A001 - as SQL calls it
    """Least value; NaN is larger than any other number, as in Spark."""
    name = column_name(column, "min")
    return Chosen(where, name, name)


def max(column: ColumnLike, *, where: str | None = None) -> Function:  # noqa: A001 - as SQL calls it
    """Largest value; NaN is larger than any other number, as in Spark."""
    name = column_name(column, "max")
    return Chosen(where, name, name, largest=True)


def variance(column: ColumnLike, *, where: str | None = None) -> Function:
    """Variance of a sample (divided by n - 1); null of one value."""
    return Spread(where, column_name(column, "variance"))


def var_pop(column: ColumnLike, *, where: str | None = None) -> Function:
    """Variance of a population (divided by n)."""
    return Spread(where, column_name(column, "var_pop"), sample=False)


def stddev(column: ColumnLike, *, where: str | None = None) -> Function:
    """Standard deviation of a sample; null of one value."""
    return Spread(where, column_name(column, "stddev"), root=True)


def stddev_pop(column: ColumnLike, *, where: str | None = None) -> Function:
    """Standard deviation of a population."""
    return Spread(where, column_name(column, "stddev_pop"), root=True, sample=False)


def first(column: ColumnLike, *, order: ColumnLike | None = None, where: str | None = None) -> Function:
    """Value of the first row in the order of a column, by default that of time, in which it is not null."""
    return Chosen(where, column_name(column, "first"), _order(order), skip_nulls=True)


def last(column: ColumnLike, *, order: ColumnLike | None = None, where: str | None = None) -> Function:
    """Value of the last row in the order of a column, by default that of time, in which it is not null."""
    return Chosen(where, column_name(column, "last"), _order(order), largest=True, skip_nulls=True)


def min_by(column: ColumnLike, order: ColumnLike, *, where: str | None = None) -> Function:
    """Value of the row in which `order` is least; null only if no such row has a value."""
    return Chosen(where, column_name(column, "min_by"), column_name(order, "min_by"))


def max_by(column: ColumnLike, order: ColumnLike, *, where: str | None = None) -> Function:
    """Value of the row in which `order` is largest; null only if no such row has a value."""
    return Chosen(where, column_name(column, "max_by"), column_name(order, "max_by"), largest=True)


def collect(column: ColumnLike, *, order: ColumnLike | None = None, where: str | None = None) -> Function:
    """All values but nulls as a list, in the order of a column, by default that of time; ties by value."""
    return Kept(where, InOrder(_order(order), (column_name(column, "collect"),)))


def count_distinct(column: ColumnLike, *, where: str | None = None) -> Function:
    """How many different values, exactly; nulls are none. It keeps them all."""
    return Kept(where, Distinct(column_name(column, "count_distinct")))


def approx_count_distinct(column: ColumnLike, *, error: float = 0.02, where: str | None = None) -> Function:
    """How many different values, about: `error` is the standard error, relative; exact up to 1 / error**2 values."""
    return Kept(where, ApproxDistinct(column_name(column, "approx_count_distinct"), error))


def approx_quantile(
    column: ColumnLike, quantile: float | Sequence[float] = 0.5, *, error: float = 0.01, where: str | None = None
) -> Function:
    """A quantile, or a list of several: off by at most `error` times the true value, which is one of the column's."""
    name, single = column_name(column, "approx_quantile"), isinstance(quantile, int | float)
    quantiles = (float(quantile),) if isinstance(quantile, int | float) else tuple(quantile)
    return Kept(where, ApproxQuantile(name, quantiles, error, single))


def in_order(
    function: Callable[[pa.Table], Any],
    *columns: ColumnLike,
    returns: pa.DataType,
    order: ColumnLike | None = None,
    where: str | None = None,
) -> Function:
    """What a function of your own makes of a key's rows in the order of a column, by default that of time.

    function  called once for each key of a window, with a pa.Table of `columns`; rows of equal order lie by their content
    returns   the Arrow type of its result
    """
    if not columns:
        raise ConfigError("in_order needs the columns that its function sees")
    names = tuple(column_name(column, "in_order") for column in columns)
    return Kept(where, InOrder(_order(order), names, function, returns))


def keep(accumulator: Accumulator, *, where: str | None = None) -> Function:
    """What an Accumulator of your own keeps."""
    if not isinstance(accumulator, Accumulator):
        raise ConfigError(f"keep needs an sp.Accumulator, got {accumulator!r}")
    try:
        hash(accumulator)
    except TypeError as error:
        raise ConfigError(f"keep needs a value, such as a frozen dataclass; {accumulator!r} has no hash") from error
    return Kept(where, accumulator)


def _order(order: ColumnLike | None) -> str:
    return "" if order is None else column_name(order, "order")
