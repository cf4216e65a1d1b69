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
    """Number of rows, for "*" or no column, or of rows in which `column` is not null.

    >>> sp.aggregate(offers, by="city", n=sp.count()).orderBy("city").collect()
    [Row(city='Basel', n=4), Row(city='Bern', n=2)]
    """
    name = "*" if column is None else column_name(column, "count")
    return CountFunction(_where(where), None if name == "*" else name)


def count_if(condition: ColumnLike) -> Function:
    """Number of rows for which a condition is true.

    >>> sp.aggregate(offers, by="city", dear=sp.count_if("price > 80")).orderBy("city").collect()
    [Row(city='Basel', dear=1), Row(city='Bern', dear=1)]
    """
    return CountFunction(condition_of(condition, "count_if"))


def sum(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:  # noqa: A001 - as SQL calls it
    """Sum of numbers; a sum of integers has 64 bits, and an overflow is an error, as in Spark.

    >>> sp.aggregate(offers, by="city", total=sp.sum("price")).orderBy("city").collect()
    [Row(city='Basel', total=305.0), Row(city='Bern', total=165.0)]
    >>> sp.aggregate(offers, dear=sp.sum("price", where="price > 80")).collect()
    [Row(dear=185.0)]
    """
    return SumFunction(_where(where), column_name(column, "sum"))


def avg(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Arithmetic mean.

    >>> sp.aggregate(offers, by="city", mean=sp.avg("price")).orderBy("city").collect()
    [Row(city='Basel', mean=76.25), Row(city='Bern', mean=82.5)]
    """
    return MeanFunction(_where(where), column_name(column, "avg"))


def mean(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Arithmetic mean, as avg.

    >>> sp.aggregate(offers, mean=sp.mean("price")).collect()
    [Row(mean=78.33333333333333)]
    """
    return MeanFunction(_where(where), column_name(column, "mean"))


def min(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:  # noqa: A001 - as SQL calls it
    """Least value; NaN is larger than any other number, as in Spark.

    >>> sp.aggregate(offers, by="city", cheapest=sp.min("price")).orderBy("city").collect()
    [Row(city='Basel', cheapest=60.0), Row(city='Bern', cheapest=70.0)]
    """
    name = column_name(column, "min")
    return ValueByOrder(_where(where), name, name)


def max(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:  # noqa: A001 - as SQL calls it
    """Largest value; NaN is larger than any other number, as in Spark.

    >>> sp.aggregate(offers, by="city", newest=sp.max("ts")).orderBy("city").collect()
    [Row(city='Basel', newest=datetime.datetime(2026, 1, 1, 11, 10)), Row(city='Bern', newest=datetime.datetime(2026, 1, 1, 11, 30))]
    """
    name = column_name(column, "max")
    return ValueByOrder(_where(where), name, name, largest=True)


def bool_and(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Whether all truth values that are not null are true; null if there are none.

    >>> sp.aggregate(offers, by="city", all_good=sp.bool_and("rating > 4")).orderBy("city").collect()
    [Row(city='Basel', all_good=False), Row(city='Bern', all_good=True)]
    """
    name = column_name(column, "bool_and")
    return LeastTruth(_where(where), name, name)


def bool_or(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Whether any truth value is true; null if all are null.

    >>> sp.aggregate(offers, by="city", any_cheap=sp.bool_or("price < 65")).orderBy("city").collect()
    [Row(city='Basel', any_cheap=True), Row(city='Bern', any_cheap=False)]
    """
    name = column_name(column, "bool_or")
    return LeastTruth(_where(where), name, name, largest=True)


def variance(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Variance of a sample (divided by n - 1); null for a single value.

    >>> sp.aggregate(offers, spread=sp.variance("price")).collect()
    [Row(spread=166.66666666666669)]
    """
    return VarianceFunction(_where(where), column_name(column, "variance"))


def var_pop(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Variance of a population (divided by n).

    >>> sp.aggregate(offers, spread=sp.var_pop("price")).collect()
    [Row(spread=138.88888888888889)]
    """
    return VarianceFunction(_where(where), column_name(column, "var_pop"), sample=False)


def stddev(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Standard deviation of a sample; null for a single value.

    >>> sp.aggregate(offers, spread=sp.stddev("price")).collect()
    [Row(spread=12.909944487358057)]
    """
    return VarianceFunction(_where(where), column_name(column, "stddev"), root=True)


def stddev_pop(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Standard deviation of a population.

    >>> sp.aggregate(offers, spread=sp.stddev_pop("price")).collect()
    [Row(spread=11.785113019775793)]
    """
    return VarianceFunction(_where(where), column_name(column, "stddev_pop"), root=True, sample=False)


def first(column: ColumnLike, *, order: ColumnLike | None = None, where: ColumnLike | None = None) -> Function:
    """First value that is not null, in the order of the column `order`, by default the time column.

    >>> sp.aggregate(offers, by="city", first=sp.first("price", order="ts")).orderBy("city").collect()
    [Row(city='Basel', first=90.0), Row(city='Bern', first=70.0)]
    """
    return ValueByOrder(_where(where), column_name(column, "first"), _order(order), skip_nulls=True)


def last(column: ColumnLike, *, order: ColumnLike | None = None, where: ColumnLike | None = None) -> Function:
    """Last value that is not null, in the order of the column `order`, by default the time column.

    >>> sp.aggregate(offers, by="city", last=sp.last("price", order="ts")).orderBy("city").collect()
    [Row(city='Basel', last=60.0), Row(city='Bern', last=95.0)]
    """
    return ValueByOrder(_where(where), column_name(column, "last"), _order(order), largest=True, skip_nulls=True)


def min_by(column: ColumnLike, order: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Value of `column` in the row with the least `order`; null only if no such row has a value.

    >>> sp.aggregate(offers, by="city", rating=sp.min_by("rating", "price")).orderBy("city").collect()
    [Row(city='Basel', rating=4.4), Row(city='Bern', rating=4.1)]
    """
    return ValueByOrder(_where(where), column_name(column, "min_by"), column_name(order, "min_by"))


def max_by(column: ColumnLike, order: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Value of `column` in the row with the largest `order`; null only if no such row has a value.

    >>> sp.aggregate(offers, by="city", price=sp.max_by("price", "rating")).orderBy("city").collect()
    [Row(city='Basel', price=90.0), Row(city='Bern', price=95.0)]
    """
    return ValueByOrder(_where(where), column_name(column, "max_by"), column_name(order, "max_by"), largest=True)


def collect_list(column: ColumnLike, *, order: ColumnLike | None = None, where: ColumnLike | None = None) -> Function:
    """List of all values but nulls, in the order of the column `order`, by default the time column; ties by value.

    >>> sp.aggregate(offers, by="city", prices=sp.collect_list("price", order="ts")).orderBy("city").collect()
    [Row(city='Basel', prices=[90.0, 75.0, 80.0, 60.0]), Row(city='Bern', prices=[70.0, 95.0])]
    """
    return AccumulatedValue(_where(where), InOrderPart(_order(order), (column_name(column, "collect_list"),)))


def collect_set(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """List of the distinct values, ascending, nulls left out.

    >>> sp.aggregate(offers, cities=sp.collect_set("city")).collect()
    [Row(cities=['Basel', 'Bern'])]
    """
    return DistinctValues(_where(where), column_name(column, "collect_set"))


def count_distinct(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Exact number of distinct values, nulls left out; the state holds all of them.

    >>> sp.aggregate(offers, cities=sp.count_distinct("city")).collect()
    [Row(cities=2)]
    """
    return AccumulatedValue(_where(where), DistinctPart(column_name(column, "count_distinct")))


def mode(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Most frequent value, nulls left out; of several such values the least, as Spark with deterministic=True.

    >>> sp.aggregate(offers, city=sp.mode("city")).collect()
    [Row(city='Basel')]
    """
    return ModeFunction(_where(where), column_name(column, "mode"))


def median(column: ColumnLike, *, where: ColumnLike | None = None) -> Function:
    """Exact median, interpolated between two values; the same as percentile(column, 0.5).

    >>> sp.aggregate(offers, by="city", middle=sp.median("price")).orderBy("city").collect()
    [Row(city='Basel', middle=77.5), Row(city='Bern', middle=82.5)]
    """
    return PercentileFunction(_where(where), column_name(column, "median"))


def percentile(column: ColumnLike, percentage: float | Sequence[float], *, where: ColumnLike | None = None) -> Function:
    """Exact percentile, or a list of several, interpolated between two values; each percentage is between 0 and 1.

    >>> sp.aggregate(offers, quarters=sp.percentile("price", [0.25, 0.75])).collect()
    [Row(quarters=[71.25, 87.5])]
    """
    name, (shares, single) = column_name(column, "percentile"), _shares(percentage)
    return PercentileFunction(_where(where), name, shares, single)


def percentile_approx(
    column: ColumnLike, percentage: float | Sequence[float], accuracy: int = 10_000, *, where: ColumnLike | None = None
) -> Function:
    """Least value that at least a share `percentage` of the values do not exceed, or a list of several.

    accuracy  as Spark's; the answer is exact, whatever it is

    >>> sp.aggregate(offers, quarters=sp.percentile_approx("price", [0.25, 0.75])).collect()
    [Row(quarters=[70.0, 90.0])]
    """
    if accuracy < 1:
        raise ConfigError(f"accuracy must be at least 1, got {accuracy!r}")
    name, (shares, single) = column_name(column, "percentile_approx"), _shares(percentage)
    return PercentileFunction(_where(where), name, shares, single, taken=True)


def approx_count_distinct(column: ColumnLike, *, error: float = 0.02, where: ColumnLike | None = None) -> Function:
    """Approximate number of distinct values, with relative standard error `error`; exact up to 1 / error**2 values.

    >>> sp.aggregate(offers, cities=sp.approx_count_distinct("city")).collect()
    [Row(cities=2)]
    """
    return AccumulatedValue(_where(where), ApproxDistinct(column_name(column, "approx_count_distinct"), error))


def approx_quantile(
    column: ColumnLike, quantile: float | Sequence[float] = 0.5, *, error: float = 0.01, where: ColumnLike | None = None
) -> Function:
    """Approximate quantile, or a list of several, within `error` times the true value, which is one of the column's.

    >>> sp.aggregate(offers, middle=sp.approx_quantile("price", 0.5)).collect()
    [Row(middle=74.44746231501993)]
    """
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

    >>> import pyarrow as pa
    >>> def rises(rows):
    ...     prices = rows.column("price").to_pylist()
    ...     return sum(later > before for before, later in zip(prices, prices[1:]))
    ...
    >>> sp.aggregate(offers, rises=sp.in_order(rises, "price", returns=pa.int64(), order="ts")).collect()
    [Row(rises=3)]
    """
    if not columns:
        raise ConfigError("in_order needs at least one column for its function")
    names = tuple(column_name(column, "in_order") for column in columns)
    return AccumulatedValue(_where(where), InOrderPart(_order(order), names, function, returns))


def accumulate(accumulator: Accumulator, *, where: ColumnLike | None = None) -> Function:
    """Result of your own Accumulator.

    >>> from skypane.examples.traffic import QueueEnd
    >>> end = QueueEnd("city", "price", "ts", vehicles=2)
    >>> sp.aggregate(offers, queue=sp.accumulate(end)).columns
    ['queue']
    """
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
