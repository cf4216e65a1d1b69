"""Random queries: preferences, scores, aggregates and conditions over the columns that a case has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from tests.differential.case import (
    Aggregate,
    Component,
    Continuous,
    Criterion,
    Function,
    KDominant,
    Preference,
    Skyline,
    Spec,
    TopDelta,
    TopK,
)
from tests.differential.definition.values import plain

Rng = np.random.Generator
Kinds = Mapping[str, str]
"""Traits of the ranked columns, by name (draw/values.py)."""

_WHOLE = ("long", "int", "short", "byte", "unsigned", "date", "timestamp", "local")
_FLOAT = ("double", "float")
_SCORED = ("double", "float", "long", "int", "short", "byte", "money", "decimal", "boolean")
_SUMMED = ("double", "float", "long", "int", "short", "byte")
_COMPARED = ("double", "long", "int", "short", "byte")


def over_blocks(rng: Rng, kinds: Kinds, by: tuple[str, ...], span: int) -> Continuous:
    """Return the front of much of a stream, lower values being better."""
    low = tuple((Criterion(column, "low"),) for column in kinds)
    return Continuous(
        Preference((low,)), max(1, int(span * rng.choice([0.3, 0.6, 2.0]))), by if rng.random() < 0.3 else ()
    )


def spec(rng: Rng, kind: str, rows: pa.Table, kinds: Kinds, by: tuple[str, ...], span: int) -> Spec:
    """Return a query of a kind over `rows`."""
    if kind == "top_k":
        k = int(rng.choice([1, 1, 2, 3, 5, 10, 100]))
        return TopK(k, _score(rng, kinds, 0), by, largest=bool(rng.random() < 0.5))
    if kind == "aggregate":
        return _aggregate(rng, rows, kinds, by)
    groups = tuple(name for name in by if rng.random() < 0.4)
    by = tuple(name for name in by if name not in groups)
    if kind == "skyline":
        return Skyline(Preference(_levels(rng, rows, kinds), groups), by)
    preference = Preference((_flat(rng, rows, kinds),), groups)
    if kind == "k_dominant":
        return KDominant(int(rng.integers(1, len(preference.levels[0]) + 1)), preference, by)
    if kind == "top_delta":
        return TopDelta(int(rng.choice([0, 1, 2, 5, 20])), preference, by)
    window = max(1, int(span * rng.choice([0.0, 0.03, 0.2, 0.5, 0.5, 3.0])) + int(rng.integers(0, 3)))
    return Continuous(preference, window, by)


def _criterion(rng: Rng, rows: pa.Table, column: str, kind: str) -> Criterion:
    if rng.random() < 0.15 and rows.num_rows and kind in (*_WHOLE, *_FLOAT):
        return _around(rng, rows, column, kind)
    return Criterion(column, str(rng.choice(["low", "high"])))


def _around(rng: Rng, rows: pa.Table, column: str, kind: str) -> Criterion:
    near = plain(rows.column(column).slice(int(rng.integers(rows.num_rows)), 1))[0]
    if near is None or (kind in _FLOAT and not abs(near) < 1e9):
        return Criterion(column, "low")
    if kind in _FLOAT:
        lo = round(near, 2)
        return Criterion(column, "around", lo, lo + float(rng.choice([0.0, 0.0, 0.1])))
    wide = int(rng.choice([0, 0, 1, 5]))
    top = 127 if kind == "byte" else 2**31 if kind in ("short", "int", "date") else 2**62
    return Criterion(column, "around", min(near, top - wide), min(near, top - wide) + wide)


def _flat(rng: Rng, rows: pa.Table, kinds: Kinds) -> tuple[Component, ...]:
    """Return one Pareto product; a chain among its factors at times."""
    if rng.random() < 0.4:  # what drifts one way gets better, or worse, in all
        return tuple((Criterion(column, "low"),) for column in kinds)
    criteria = [_criterion(rng, rows, column, kind) for column, kind in kinds.items()]
    if len(criteria) > 2 and rng.random() < 0.15:
        return ((criteria[0], criteria[1]), *((one,) for one in criteria[2:]))
    return tuple((one,) for one in criteria)


def _levels(rng: Rng, rows: pa.Table, kinds: Kinds) -> tuple[tuple[Component, ...], ...]:
    flat = _flat(rng, rows, kinds)
    if len(flat) < 2 or rng.random() < 0.75:
        return (flat,)
    cut = int(rng.integers(1, len(flat)))
    return flat[:cut], flat[cut:]


def _score(rng: Rng, kinds: Kinds, depth: int) -> Any:
    """Return a column, or a tree of doubles with at least one column: of other types, Spark computes."""
    doubles = [name for name, kind in kinds.items() if kind == "double"]
    columns = [name for name, kind in kinds.items() if kind in _SCORED]
    if depth == 0 and (not doubles or rng.random() < 0.35):
        return str(rng.choice(columns)) if columns else "id"
    if depth == 2 or rng.random() < 0.35:
        return str(rng.choice(doubles))
    operation = str(rng.choice(["+", "-", "*", "/", "min", "max", "abs", "sqrt", "log", "negative"]))
    if operation in ("abs", "sqrt", "log", "negative"):
        return (operation, _score(rng, kinds, depth + 1))
    other = float(rng.choice([0.0, 2.0, 0.1, 1e6])) if rng.random() < 0.3 else _score(rng, kinds, depth + 1)
    return (operation, _score(rng, kinds, depth + 1), other)


def _aggregate(rng: Rng, rows: pa.Table, kinds: Kinds, by: tuple[str, ...]) -> Aggregate:
    draw = _in_numbers if rng.random() < 0.35 else _function
    functions = [draw(rng, f"f{number}", rows, kinds) for number in range(int(rng.integers(1, 6)))]
    chooses = rng.random() < 0.25
    if chooses or rng.random() < 0.5:
        functions.insert(0, Function("n", "count"))
    required = tuple(name for name in kinds if rng.random() < 0.1)
    return Aggregate(
        tuple(functions),
        by,
        required,
        int(rng.integers(1, 4)) if chooses and rng.random() < 0.6 else None,
        int(rng.integers(1, 4)) if chooses and rng.random() < 0.6 else None,
    )


_PERCENTILES = ("median", "percentile", "percentile_approx")
_NUMERIC = ("sum", "avg", "mean", "variance", "var_pop", "stddev", "stddev_pop", "approx_quantile", *_PERCENTILES)
_IN_NUMBERS = ("sum", "sum", "avg", "variance", "count", "min", "max")
_SIMPLE = ("count", "min", "max", "first", "last", "count_distinct", "approx_count_distinct", "collect_set", "mode")
_ORDERED = ("min_by", "max_by", "first", "last", "collect_list", "in_order")


def _in_numbers(rng: Rng, name: str, rows: pa.Table, kinds: Kinds) -> Function:
    """Return a function whose states are a few integers: those are kept over windows in a way of their own."""
    del rows
    numeric = [column for column, kind in kinds.items() if kind in _SUMMED]
    if not numeric:
        return Function(name, "count")
    return Function(name, str(rng.choice(_IN_NUMBERS)), (str(rng.choice(numeric)),))


def _function(rng: Rng, name: str, rows: pa.Table, kinds: Kinds) -> Function:
    where = _condition(rng, rows, kinds, 0) if rng.random() < 0.3 else None
    numeric = [column for column, kind in kinds.items() if kind in _SUMMED]
    if numeric and rng.random() < 0.5:
        return Function(name, str(rng.choice(_NUMERIC)), (str(rng.choice(numeric)),), where)
    flags = [column for column, kind in kinds.items() if kind == "boolean"]
    if flags and rng.random() < 0.2:
        return Function(name, str(rng.choice(["bool_and", "bool_or"])), (str(rng.choice(flags)),), where)
    columns = [*kinds, "word"]
    if rng.random() < 0.5:
        word = str(rng.choice(_SIMPLE))
        hashable = [column for column in columns if kinds.get(column) not in ("decimal", "money", "unsigned")]
        return Function(name, word, (str(rng.choice(hashable if word.startswith("approx") else columns)),), where)
    word = str(rng.choice(_ORDERED))
    return Function(name, word, (str(rng.choice(columns)), str(rng.choice(columns))), where)


def _condition(rng: Rng, rows: pa.Table, kinds: Kinds, depth: int) -> Any:
    if depth < 2 and rng.random() < 0.35:
        operation = str(rng.choice(["and", "or", "not"]))
        parts = [_condition(rng, rows, kinds, depth + 1) for _ in range(1 if operation == "not" else 2)]
        return (operation, *parts)
    plain_kinds = [name for name, kind in kinds.items() if kind in _COMPARED]
    if not plain_kinds or not rows.num_rows or rng.random() < 0.3:
        return ("in", "word", tuple(rng.choice(["a", "b", "zz", ""], 2).tolist()))
    column = str(rng.choice(plain_kinds))
    if rng.random() < 0.2:
        return ("null", column)
    near = plain(rows.column(column).slice(int(rng.integers(rows.num_rows)), 1))[0]
    if near is None or (isinstance(near, float) and not abs(near) < 1e300):
        near = 0.5 if kinds[column] == "double" else 1
    return (str(rng.choice(["<", "<=", ">", ">=", "==", "!="])), column, near)
