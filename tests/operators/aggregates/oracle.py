"""What the functions mean, row by row in Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.differential.definition.aggregate import chosen, collected, different, mode, percentile, taken
from tests.differential.definition.values import key, order

Row = dict[str, Any]
Key = tuple[Any, ...]


def groups(rows: list[Row], by: list[str]) -> dict[Key, list[Row]]:
    """The rows of each key; NaN is one value, and -0.0 is 0.0."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(key(row[name]) for name in by), []).append(row)
    return found


def _present(rows: list[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def _total(values: list[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], int):
        return sum(values)
    if all(map(math.isfinite, values)):
        return float(sum(map(Fraction, values), Fraction(0)))
    return sum(value for value in values if not math.isfinite(value))


def _mean(values: list[Any]) -> float | None:
    total = _total(values)
    return None if total is None else total / len(values)


def _variance(values: list[Any], less: int) -> float | None:
    if len(values) <= less:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    mean = sum(map(Fraction, values), Fraction(0)) / len(values)
    return float(sum(((Fraction(value) - mean) ** 2 for value in values), Fraction(0)) / (len(values) - less))


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _percentile(values: list[Any], share: float) -> float | None:
    return percentile(values, share) if values else None


def _each(of: Callable[[list[Any], float], Any], values: list[Any], shares: list[float]) -> list[Any] | None:
    return [of(values, share) for share in shares] if values else None


def _is(condition: Callable[[Row], Any]) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [row for row in rows if condition(row)]


_OVER = _is(
    lambda row: row["f"] is not None and (row["f"] > 0 or math.isnan(row["f"])) and row["text"] not in {None, "x"}
)
_LISTED = _is(lambda row: row["text"] in {"x", "zz"} or row["flag"])
_OFF = _is(lambda row: row["flag"] is False)
_BELOW = _is(lambda row: row["f"] is not None and row["f"] < 1)
_POSITIVE = _is(lambda row: row["i"] is not None and row["i"] > 0)

ORACLE: dict[str, Callable[[list[Row]], Any]] = {
    "rows": len,
    "values": lambda rows: len(_present(rows, "f")),
    "good": lambda rows: len(_OVER(rows)),
    "listed": lambda rows: len(_present(_LISTED(rows), "i")),
    "sum_i": lambda rows: _total(_present(rows, "i")),
    "sum_f": lambda rows: _total(_present(rows, "f")),
    "sum_small": lambda rows: _total(_present(_OFF(rows), "small")),
    "avg_i": lambda rows: _mean(_present(rows, "i")),
    "avg_f": lambda rows: _mean(_present(rows, "f")),
    "min_i": lambda rows: min(_present(rows, "i"), default=None),
    "max_f": lambda rows: max(_present(rows, "f"), key=order, default=None),
    "min_small": lambda rows: min(_present(rows, "small"), default=None),
    "min_text": lambda rows: min(_present(rows, "text"), default=None),
    "max_at": lambda rows: max(_present(rows, "at"), default=None),
    "max_flag": lambda rows: max(_present(rows, "flag"), default=None),
    "var_f": lambda rows: _variance(_present(rows, "f"), 1),
    "var_i": lambda rows: _variance(_present(rows, "i"), 0),
    "stddev_i": lambda rows: _root(_variance(_present(rows, "i"), 1)),
    "stddev_small": lambda rows: _root(_variance(_present(rows, "small"), 0)),
    "first_f": lambda rows: chosen(rows, "f", "at", last=False, skip=True),
    "last_text": lambda rows: chosen(rows, "text", "at", last=True, skip=True),
    "i_of_max_f": lambda rows: chosen(rows, "i", "f", last=True),
    "text_of_min_i": lambda rows: chosen(rows, "text", "i", last=False),
    "texts": lambda rows: collected(rows, "text", "at"),
    "numbers": lambda rows: collected(_BELOW(rows), "i", "f"),
    "starred": len,
    "mean_small": lambda rows: _mean(_present([row for row in rows if row["flag"]], "small")),
    "all_flags": lambda rows: all(flags) if (flags := _present(rows, "flag")) else None,
    "any_flag": lambda rows: any(flags) if (flags := _present(_POSITIVE(rows), "flag")) else None,
    "set": lambda rows: different(_present(rows, "f")),
    "set_of_texts": lambda rows: different(_present(_POSITIVE(rows), "text")),
    "mode_f": lambda rows: mode(_present(rows, "f")),
    "mode_text": lambda rows: mode(_present(_OFF(rows), "text")),
    "median_f": lambda rows: _percentile(_present(rows, "f"), 0.5),
    "median_i": lambda rows: _percentile(_present(rows, "i"), 0.5),
    "parts_of_f": lambda rows: _each(_percentile, _present(rows, "f"), [0.0, 0.3, 0.5, 1.0]),
    "part_of_small": lambda rows: _percentile(_present([row for row in rows if row["flag"]], "small"), 0.9),
    "taken_of_f": lambda rows: _each(taken, _present(rows, "f"), [0.0, 0.25, 0.5, 1.0]),
    "taken_of_at": lambda rows: taken(_present(rows, "at"), 0.4),
    "different": lambda rows: len({key(value) for value in _present(rows, "f")}),
    "different_texts": lambda rows: len(set(_present(_POSITIVE(rows), "text"))),
}
