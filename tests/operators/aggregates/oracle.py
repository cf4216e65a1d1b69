"""Functions beside what they mean, row by row in Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from tests.differential.definition.aggregate import chosen, collected, different, mode, percentile, taken
from tests.differential.definition.values import key, order

import skypane as sp

Row = dict[str, Any]
Key = tuple[Any, ...]
Where = Callable[[Row], Any]
Meaning = Callable[[list[Row]], Any]


def groups(rows: list[Row], by: list[str]) -> dict[Key, list[Row]]:
    """The rows of each key; NaN is one value, and -0.0 is 0.0."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(key(row[name]) for name in by), []).append(row)
    return found


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


def _root_of_variance(values: list[Any], less: int) -> float | None:
    variance = _variance(values, less)
    return None if variance is None else math.sqrt(variance)


def _share(of: Callable[[list[Any], float], Any], share: float | Sequence[float]) -> Callable[[list[Any]], Any]:
    """Return what a percentile means, or a list of several; null without a value."""
    if isinstance(share, Sequence):
        return lambda values: [of(values, one) for one in share] if values else None
    return lambda values: of(values, share) if values else None


def _of(column: str, meaning: Callable[[list[Any]], Any], where: Where = lambda _: True) -> Meaning:
    """Return what a function of the values of a column means, in the rows that a condition keeps."""
    return lambda rows: meaning([row[column] for row in rows if where(row) and row[column] is not None])


def _over(row: Row) -> bool:
    return row["f"] is not None and (row["f"] > 0 or math.isnan(row["f"])) and row["text"] not in {None, "x"}


def _is_listed(row: Row) -> Any:
    return row["text"] in {"x", "zz"} or row["flag"]


def _is_off(row: Row) -> bool:
    return row["flag"] is False


def _is_on(row: Row) -> Any:
    return row["flag"]


def _is_positive(row: Row) -> bool:
    return row["i"] is not None and row["i"] > 0


MEANINGS: dict[str, tuple[Any, Meaning]] = {
    "rows": (sp.count(), len),
    "values": (sp.count("f"), _of("f", len)),
    "good": (sp.count_if("f > 0 and text != 'x'"), lambda rows: sum(map(_over, rows))),
    "listed": (sp.count("i", where="text in ('x', 'zz') or flag"), _of("i", len, _is_listed)),
    "sum_i": (sp.sum("i"), _of("i", _total)),
    "sum_f": (sp.sum("f"), _of("f", _total)),
    "sum_small": (sp.sum("small", where="not flag"), _of("small", _total, _is_off)),
    "avg_i": (sp.avg("i"), _of("i", _mean)),
    "avg_f": (sp.avg("f"), _of("f", _mean)),
    "min_i": (sp.min("i"), _of("i", partial(min, default=None))),
    "max_f": (sp.max("f"), _of("f", partial(max, key=order, default=None))),
    "min_small": (sp.min("small"), _of("small", partial(min, default=None))),
    "min_text": (sp.min("text"), _of("text", partial(min, default=None))),
    "max_at": (sp.max("at"), _of("at", partial(max, default=None))),
    "max_flag": (sp.max("flag"), _of("flag", partial(max, default=None))),
    "var_f": (sp.variance("f"), _of("f", partial(_variance, less=1))),
    "var_i": (sp.var_pop("i"), _of("i", partial(_variance, less=0))),
    "stddev_i": (sp.stddev("i"), _of("i", partial(_root_of_variance, less=1))),
    "stddev_small": (sp.stddev_pop("small"), _of("small", partial(_root_of_variance, less=0))),
    "first_f": (sp.first("f"), lambda rows: chosen(rows, "f", "at", last=False, skip=True)),
    "last_text": (sp.last("text"), lambda rows: chosen(rows, "text", "at", last=True, skip=True)),
    "i_of_max_f": (sp.max_by("i", "f"), lambda rows: chosen(rows, "i", "f", last=True)),
    "text_of_min_i": (sp.min_by("text", "i"), lambda rows: chosen(rows, "text", "i", last=False)),
    "texts": (sp.collect_list("text"), lambda rows: collected(rows, "text", "at")),
    "numbers": (
        sp.collect_list("i", order="f", where="f < 1"),
        lambda rows: collected([row for row in rows if row["f"] is not None and row["f"] < 1], "i", "f"),
    ),
    "starred": (sp.count("*"), len),
    "mean_small": (sp.mean("small", where="flag"), _of("small", _mean, _is_on)),
    "all_flags": (sp.bool_and("flag"), _of("flag", lambda flags: all(flags) if flags else None)),
    "any_flag": (
        sp.bool_or("flag", where="i > 0"),
        _of("flag", lambda flags: any(flags) if flags else None, _is_positive),
    ),
    "different": (sp.count_distinct("f"), _of("f", lambda values: len(set(map(key, values))))),
    "set": (sp.collect_set("f"), _of("f", different)),
    "set_of_texts": (sp.collect_set("text", where="i > 0"), _of("text", different, _is_positive)),
    "mode_f": (sp.mode("f"), _of("f", mode)),
    "mode_text": (sp.mode("text", where="not flag"), _of("text", mode, _is_off)),
    "median_f": (sp.median("f"), _of("f", _share(percentile, 0.5))),
    "median_i": (sp.median("i"), _of("i", _share(percentile, 0.5))),
    "parts_of_f": (sp.percentile("f", [0.0, 0.3, 0.5, 1.0]), _of("f", _share(percentile, (0.0, 0.3, 0.5, 1.0)))),
    "part_of_small": (sp.percentile("small", 0.9, where="flag"), _of("small", _share(percentile, 0.9), _is_on)),
    "taken_of_f": (sp.percentile_approx("f", (0.0, 0.25, 0.5, 1.0)), _of("f", _share(taken, (0.0, 0.25, 0.5, 1.0)))),
    "taken_of_at": (sp.percentile_approx("at", 0.4), _of("at", _share(taken, 0.4))),
    "different_texts": (
        sp.count_distinct("text", where="i > 0"),
        _of("text", lambda texts: len(set(texts)), _is_positive),
    ),
}
FUNCTIONS: dict[str, Any] = {name: function for name, (function, _) in MEANINGS.items()}
