"""The public aggregate functions: sp.count(), sp.sum("amount"), sp.max_by("name", "price").

Each takes an expression in place of a column, in SQL or as a Spark Column: sp.sum("price * pieces"),
sp.sum(F.col("price") * F.col("pieces")). It also takes `where`, a condition on the rows that it uses:
sp.count(where="price > 100"), SQL or a Spark Column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from skypane.operators.aggregates.condition import condition_of
from skypane.operators.aggregates.functions import (
    AccumulatedValue,
    CountFunction,
    Function,
    LeastTruth,
    MeanFunction,
    SumFunction,
    ValueByOrder,
    VarianceFunction,
)
from skypane.operators.aggregates.sketches import ApproxDistinct, ApproxQuantile
from skypane.operators.aggregates.value_functions import DistinctValues, ModeFunction, PercentileFunction
from skypane.operators.aggregates.wide_states import Accumulator, DistinctPart, InOrderPart
from skypane.preference import ColumnLike
from skypane.preference.column import column_name
from skypane.types import ConfigError


def count(column: ColumnLike | None = None, *, where: ColumnLike | None = None) -> Function:
    """Number of rows, for "*" or no column, or of rows in which `column` is not null."""
    name = "*" if column is None else column_name(column, "count")
    return CountFunction(_where(where), None if name == "*" else name)


def count_if(condition: ColumnLike) -> Function:
    """Number of rows for which a condition is true."""
    return CountFunction(condition_of(condition, "count_if"))


def sum(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:  # noqa: A001 - as SQL calls it
    """Sum of numbers; a sum of integers has 64 bits, and an overflow is an error, as in Spark."""
    return SumFunction(_where(where), column_name(column, "sum"))


def avg(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Arithmetic mean."""
    return MeanFunction(_where(where), column_name(column, "avg"))


def mean(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Arithmetic mean, as avg."""
    return MeanFunction(_where(where), column_name(column, "mean"))


def min(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:  # noqa: A001 - as SQL calls it
    """Least value; NaN is larger than any other number, as in Spark."""
    name = column_name(column, "min")
    return ValueByOrder(_where(where), name, name)


def max(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:  # noqa: A001 - as SQL calls it
    """Largest value; NaN is larger than any other number, as in Spark."""
    name = column_name(column, "max")
    return ValueByOrder(_where(where), name, name, largest=True)


def bool_and(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Whether all truth values that are not null are true; null if there are none."""
    name = column_name(column, "bool_and")
    return LeastTruth(_where(where), name, name)


def bool_or(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Whether any truth value is true; null if all are null."""
    name = column_name(column, "bool_or")
    return LeastTruth(_where(where), name, name, largest=True)


def variance(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Variance of a sample (divided by n - 1); null for a single value."""
    return VarianceFunction(_where(where), column_name(column, "variance"))


def var_pop(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Variance of a population (divided by n)."""
    return VarianceFunction(_where(where), column_name(column, "var_pop"), sample=False)


def stddev(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Standard deviation of a sample; null for a single value."""
    return VarianceFunction(_where(where), column_name(column, "stddev"), root=True)


def stddev_pop(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Standard deviation of a population."""
    return VarianceFunction(_where(where), column_name(column, "stddev_pop"), root=True, sample=False)


def first(column: ColumnLike, *, order: ColumnLike | None = None, where: ColumnLike | None = None) -> Function:
    """First value that is not null, in the order of the column `order`, by default the time column."""
    return ValueByOrder(_where(where), column_name(column, "first"), _order(order), skip_nulls=True)


def last(column: ColumnLike, *, order: ColumnLike | None = None, where: ColumnLike | None = None) -> Function:
    """Last value that is not null, in the order of the column `order`, by default the time column."""
    return ValueByOrder(_where(where), column_name(column, "last"), _order(order), largest=True, skip_nulls=True)


def min_by(column: ColumnLike, order: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Value of `column` in the row with the least `order`; null only if no such row has a value."""
    return ValueByOrder(_where(where), column_name(column, "min_by"), column_name(order, "min_by"))


def max_by(column: ColumnLike, order: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Value of `column` in the row with the largest `order`; null only if no such row has a value."""
    return ValueByOrder(_where(where), column_name(column, "max_by"), column_name(order, "max_by"), largest=True)


def collect_list(column: ColumnLike, *, order: ColumnLike | None = None, where: ColumnLike | None = None) -> Function:
    """List of all values but nulls, in the order of the column `order`, by default the time column; ties by value."""
    return AccumulatedValue(_where(where), InOrderPart(_order(order), (column_name(column, "collect_list"),)))


def collect_set(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """List of the distinct values, ascending, nulls left out."""
    return DistinctValues(_where(where), column_name(column, "collect_set"))


def count_distinct(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Exact number of distinct values, nulls left out; the state holds all of them."""
    return AccumulatedValue(_where(where), DistinctPart(column_name(column, "count_distinct")))


def mode(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Most frequent value, nulls left out; of several such values the least, as Spark with deterministic=True."""
    return ModeFunction(_where(where), column_name(column, "mode"))


def median(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Exact median, interpolated between two values; the same as percentile(column, 0.5)."""
    return PercentileFunction(_where(where), column_name(column, "median"))


def percentile(column: ColumnLike, percentage: float | Sequence[float], *, where: ColumnLike | None = None) -> Function:
    """Exact percentile, or a list of several, interpolated between two values; each percentage is between 0 and 1."""
    name, (shares, single) = column_name(column, "percentile"), _shares(percentage)
    return PercentileFunction(_where(where), name, shares, single)


def percentile_approx(
    column: ColumnLike, percentage: float | Sequence[float], accuracy: int = 10_000, *, where: ColumnLike | None = None
) -> Function:
    """Least value that at least a share `percentage` of the values do not exceed, or a list of several.

    accuracy  as Spark's; the answer is exact, whatever it is
    """
    if accuracy < 1:
        raise ConfigError(f"accuracy must be at least 1, got {accuracy!r}")
    name, (shares, single) = column_name(column, "percentile_approx"), _shares(percentage)
    return PercentileFunction(_where(where), name, shares, single, taken=True)


def approx_count_distinct(column: ColumnLike, *, error: float = 0.02, where: ColumnLike | None = None) -> Function:
    """Approximate number of distinct values, with relative standard error `error`; exact up to 1 / error**2 values."""
    return AccumulatedValue(_where(where), ApproxDistinct(column_name(column, "approx_count_distinct"), error))


def approx_quantile(
    column: ColumnLike, quantile: float | Sequence[float] = 0.5, *, error: float = 0.01, where: ColumnLike | None = None
) -> Function:
    """Approximate quantile, or a list of several, within `error` times the true value, which is one of the column's."""
    name, (quantiles, single) = column_name(column, "approx_quantile"), _shares(quantile)
    return AccumulatedValue(_where(where), ApproxQuantile(name, quantiles, error, single))


def in_order(
    function: Callable[[pa.Table], Any],
    *columns: ColumnLike,
    returns: pa.DataType,
    order: ColumnLike | None = None,
    where: ColumnLike | None = None,
) -> Function:
    """Result of your own function on a key's rows, in the order of the column `order`, by default the time column.

    function  called once per key of a window with a pa.Table of `columns`; rows of equal order are sorted by content
    returns   the Arrow type of its result
    """
    if not columns:
        raise ConfigError("in_order needs at least one column for its function")
    names = tuple(column_name(column, "in_order") for column in columns)
    return AccumulatedValue(_where(where), InOrderPart(_order(order), names, function, returns))


def accumulate(accumulator: Accumulator, *, where: ColumnLike | None = None) -> Function:
    """Result of your own Accumulator."""
    if not isinstance(accumulator, Accumulator):
        raise ConfigError(f"accumulate needs an sp.Accumulator, got {accumulator!r}")
    try:
        hash(accumulator)
    except TypeError as error:
        raise ConfigError(
            f"accumulate needs a hashable value such as a frozen dataclass, got {accumulator!r}"
        ) from error
    return AccumulatedValue(_where(where), accumulator)


def _shares(share: float | Sequence[float]) -> tuple[tuple[float, ...], bool]:
    """Return one or several shares, and whether it is one."""
    single = isinstance(share, int | float)
    return ((float(share),) if isinstance(share, int | float) else tuple(share)), single


def _where(where: ColumnLike | None) -> str | None:
    return None if where is None else condition_of(where, "where")


def _order(order: ColumnLike | None) -> str:
    return "" if order is None else column_name(order, "order")
