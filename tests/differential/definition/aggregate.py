"""What aggregate functions mean, row by row; and how far off a value may be where the package states a bound.

A sum of floats keeps 96 bits below its largest number: it may be off by a unit in its last place, and by what is cut off below them.
Whatever it is, it is the same on every way, to the bit: compare.py holds the ways to one another.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
from tests.differential.case import TIME, Aggregate, Function, IntArray
from tests.differential.definition.condition import holds
from tests.differential.definition.values import is_nan, key, keys, order, order_of_key, plain
from tests.oracles import cut_off

Row: TypeAlias = Mapping[str, Any]

_LOST_OF_A_SQUARE = Fraction(1, 2**90)
_TOO_LARGE, _TOO_SMALL = 1e150, 1e-150
"""Beyond these a square is not a float64, and a variance is not defined."""
APPROXIMATE = 0.05
"""The error of the approximate functions."""
SHARES = (0.0, 0.3, 1.0)
"""The percentiles; percentile_approx has the one in the middle."""
_SURELY = 6
"""Standard errors that an estimate is never off by: of a billion estimates two are off by more."""


@dataclass(frozen=True)
class Near:
    """A number that may be off by `slack`; or anything, if that is None."""

    value: float
    slack: float | None = 0.0

    def admits(self, found: Any) -> bool:
        """Whether a value is as near."""
        if self.slack is None:
            return True
        if found is None or math.isnan(self.value) or math.isnan(found):
            return found is not None and math.isnan(self.value) and math.isnan(found)
        return bool(found == self.value or abs(found - self.value) <= self.slack)


class TooLargeError(Exception):
    """A sum of integers that no 64 bits hold: the package refuses it."""


def answers(rows: pa.Table, spec: Aggregate, members: IntArray) -> list[dict[str, Any]]:
    """Return a row of the answer for each key among some rows: plain values, or Near ones."""
    needed = {TIME, *spec.by, *(name for one in spec.functions for name in (*one.columns, *named(one.where)))}
    table = rows.select([name for name in rows.column_names if name in needed]).take(pa.array(members))
    columns = {name: plain(table.column(name)) for name in table.column_names}
    by_key: dict[tuple[Any, ...], list[Row]] = {}
    for number, one in enumerate(keys(table, spec.by)):
        by_key.setdefault(one, []).append({name: values[number] for name, values in columns.items()})
    found = [
        dict(zip(spec.by, one, strict=True)) | {function.name: _value(function, mine) for function in spec.functions}
        for one, mine in by_key.items()
    ]
    return _emitted(found, spec)


def _emitted(found: list[dict[str, Any]], spec: Aggregate) -> list[dict[str, Any]]:
    """Return the rows with so many rows behind them, and of these the ones with most; of equal ones the least keys."""
    if spec.at_least is not None:
        found = [row for row in found if row["n"] >= spec.at_least]
    if spec.top is not None:
        content = {id(row): order_of_key([row[name] for name in spec.by]) for row in found}
        found = sorted(found, key=lambda row: (-row["n"], content[id(row)]))[: spec.top]
    return found


def named(tree: Any) -> set[str]:
    if not isinstance(tree, tuple):
        return set()
    if tree[0] in ("and", "or", "not"):
        return set().union(*(named(part) for part in tree[1:]))
    return {tree[1]}


def _value(function: Function, rows: Sequence[Row]) -> Any:
    if function.where is not None:
        rows = [row for row in rows if holds(function.where, row) is True]
    if not function.columns:
        return len(rows)
    column = function.columns[0]
    present = [row[column] for row in rows if row[column] is not None]
    if function.word in _OF_VALUES:
        return _OF_VALUES[function.word](present)
    by = function.columns[1] if len(function.columns) > 1 else TIME
    return _OF_ROWS[function.word](rows, column, by)


def _sum(values: Sequence[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], int):
        total = sum(values)
        if not -(2**63) <= total < 2**63:
            raise TooLargeError
        return total
    if not all(map(math.isfinite, values)):
        return Near(sum(value for value in values if not math.isfinite(value)))
    exact, lost = sum(map(Fraction, values), Fraction(0)), cut_off(values)
    if abs(exact) + lost >= Fraction(math.ulp(1.0)) * Fraction(2) ** 1074:
        return Near(0.0, None)
    return Near(float(exact), float(lost) + math.ulp(float(exact)))


def _mean(values: Sequence[Any]) -> Any:
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        return Near(sum(float(value) for value in values if not math.isfinite(value)))
    exact, lost = sum(map(Fraction, values), Fraction(0)), cut_off(values)
    if abs(exact) + lost >= Fraction(2) ** 1023:
        return Near(0.0, None)
    mean = float(exact / len(values))
    return Near(mean, float(lost / len(values)) + 4 * math.ulp(mean))


def _variance(values: Sequence[Any], *, sample: bool, root: bool) -> Any:
    n = len(values) - sample
    if n < 1:
        return None
    if not all(map(math.isfinite, values)):
        return Near(math.nan)
    most = max(map(abs, values))
    if most > _TOO_LARGE or 0 < most < _TOO_SMALL:
        return Near(0.0, None)
    numbers = [Fraction(float(value)) for value in values]
    mean = sum(numbers, Fraction(0)) / len(numbers)
    exact = float(sum(((value - mean) ** 2 for value in numbers), Fraction(0)) / n)
    slack = 1e-9 * exact + float(Fraction(most) ** 2 * _LOST_OF_A_SQUARE * len(values))
    return Near(math.sqrt(exact), 1e-9 * math.sqrt(exact) + math.sqrt(slack)) if root else Near(exact, slack)


def _quantile(values: Sequence[Any]) -> Any:
    """The median: the value of place floor((n - 1) / 2), within the error."""
    if not values:
        return None
    ordered = sorted(map(float, values), key=lambda value: order(value)[:2])
    middle = ordered[(len(values) - 1) // 2]
    return Near(middle, abs(middle) * APPROXIMATE * (1 + 1e-9) if math.isfinite(middle) else 0.0)


def different(values: Sequence[Any]) -> list[Any]:
    """The different values, ascending; -0.0 is 0.0."""
    by_key = {key(value): value + 0.0 if isinstance(value, float) else value for value in values}
    return sorted(by_key.values(), key=order)


def mode(values: Sequence[Any]) -> Any:
    """The least of the values that occur most often."""
    counts = Counter(map(key, values))
    return next((value for value in different(values) if counts[key(value)] == max(counts.values())), None)


def percentile(values: Sequence[Any], share: float) -> float:
    """Between the values at the places around share (n - 1) in order."""
    ordered = sorted((float(value) + 0.0 for value in values), key=order)
    place = share * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low if low == high else low + (high - low) * (place - math.floor(place))


def taken(values: Sequence[Any], share: float) -> Any:
    """The first value in order up to which there is such a share of all."""
    ordered = sorted((value + 0.0 if isinstance(value, float) else value for value in values), key=order)
    return next((value for place, value in enumerate(ordered, 1) if place >= share * len(ordered)), None)


def _about_as_many(values: Sequence[Any]) -> int | Near:
    """Exact below 1 / error² different values, an estimate beyond."""
    count = len(set(map(key, values)))
    return count if count <= 1 / APPROXIMATE**2 else Near(count, _SURELY * APPROXIMATE * count)


def chosen(rows: Sequence[Row], column: str, by: str, *, last: bool, skip: bool = False) -> Any:
    rows = [row for row in rows if row[by] is not None and not (skip and row[column] is None)]
    if not rows:
        return None
    parts = 3 if by == column else 2  # -0.0 is 0.0 as an order; as the value itself it comes before
    end = (max if last else min)(order(row[by])[:parts] for row in rows)
    return min((row[column] for row in rows if order(row[by])[:parts] == end), key=order)


def collected(rows: Sequence[Row], column: str, by: str) -> list[Any]:
    """By order, in which -0.0 is 0.0; equals by their content, the order's own first."""
    rows = [row for row in rows if row[column] is not None]
    ordered = sorted(rows, key=lambda row: (order(row[by])[:2], order(row[by]), order(row[column])))
    return [row[column] for row in ordered]


def rises(values: Sequence[Any]) -> int:
    """How often a value is larger than the one before: a user-defined function, for in_order."""
    known = [value for value in values if value is not None and not is_nan(value)]
    return sum(after > before for before, after in pairwise(known))


def _rises(rows: Sequence[Row], column: str, by: str) -> int:
    return rises(collected(rows, column, by))


_OF_VALUES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "count": len,
    "sum": _sum,
    "avg": _mean,
    "min": lambda values: min(values, key=order, default=None),
    "max": lambda values: max(values, key=order, default=None),
    "variance": lambda values: _variance(values, sample=True, root=False),
    "var_pop": lambda values: _variance(values, sample=False, root=False),
    "stddev": lambda values: _variance(values, sample=True, root=True),
    "stddev_pop": lambda values: _variance(values, sample=False, root=True),
    "count_distinct": lambda values: len(set(map(key, values))),
    "mean": _mean,
    "bool_and": lambda values: all(values) if values else None,
    "bool_or": lambda values: any(values) if values else None,
    "collect_set": different,
    "mode": mode,
    "median": lambda values: percentile(values, 0.5) if values else None,
    "percentile": lambda values: [percentile(values, share) for share in SHARES] if values else None,
    "percentile_approx": lambda values: taken(values, SHARES[1]),
    "approx_count_distinct": _about_as_many,
    "approx_quantile": _quantile,
}
_OF_ROWS: dict[str, Callable[[Sequence[Row], str, str], Any]] = {
    "first": lambda rows, column, by: chosen(rows, column, by, last=False, skip=True),
    "last": lambda rows, column, by: chosen(rows, column, by, last=True, skip=True),
    "min_by": lambda rows, column, by: chosen(rows, column, by, last=False),
    "max_by": lambda rows, column, by: chosen(rows, column, by, last=True),
    "collect_list": collected,
    "in_order": _rises,
}
