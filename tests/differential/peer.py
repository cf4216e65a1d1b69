"""DuckDB's answers to aggregates: a second opinion on the definition, of the functions that mean the same there, to the last bit."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from tests.differential.case import TIME, Aggregate, Case, Function
from tests.differential.definition.values import key, plain
from tests.differential.definition.windows import members, times, usable
from tests.differential.expected import Values

_START: Final = "start_of_window"
_WORDS: Final = {"count": "count({})", "min": "min({})", "max": "max({})", "count_distinct": "count(DISTINCT {})"}


def difference(case: Case, wanted: Values) -> str | None:
    """Return how DuckDB's answers differ from what the definition gives for an aggregate of any rows, or None."""
    spec = case.spec
    assert isinstance(spec, Aggregate)
    functions = [one for one in spec.functions if _is_known(case, one)]
    if not functions or spec.at_least is not None or spec.top is not None:
        return None
    rows = [
        {name: _plain(row[name]) for name in (_START, *spec.by, *(one.name for one in functions))}
        for row in _answered(case, functions)
    ]
    found = {(row[_START], *(key(row[name]) for name in spec.by)): row for row in rows}
    left = {(start, *(row[name] for name in spec.by)): row for start, row in wanted.rows}
    if set(found) != set(left):
        return f"DuckDB has the keys {sorted(map(str, found))[:9]}, the definition {sorted(map(str, left))[:9]}"
    for place, row in left.items():
        for one in functions:
            if key(row[one.name]) != key(found[place][one.name]):
                return f"{one.word}{one.columns} of {place}: {found[place][one.name]!r} by DuckDB, {row[one.name]!r} by definition"
    return None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_known(case: Case, one: Function) -> bool:
    if one.word == "sum":
        return bool(pa.types.is_integer(case.rows.schema.field(one.columns[0]).type))
    return one.word in _WORDS


@cache
def _session() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _answered(case: Case, functions: list[Function]) -> list[dict[str, Any]]:
    rows = _in_windows(case)
    by = ", ".join([_START, *case.spec.by])
    columns = ", ".join(f"{_difference_text(one)} AS {one.name}" for one in functions)
    session = _session()
    session.register("rows_in_windows", rows)
    answered = session.sql(f"SELECT {by}, {columns} FROM rows_in_windows GROUP BY {by}").to_arrow_table()  # noqa: S608
    session.unregister("rows_in_windows")
    values = {name: plain(answered.column(name)) for name in answered.column_names}
    return [dict(zip(values, line, strict=True)) for line in zip(*values.values(), strict=True)]


def _in_windows(case: Case) -> pa.Table:
    """Return each row as often as there are windows that hold it; times as the integers that they are stored as."""
    rows = case.rows.take(pa.array(usable(case.rows, case.spec)))
    found = members(times(rows), case.windows)
    starts = np.repeat(np.array([start for start, _ in found], np.int64), [len(mine) for _, mine in found])
    which = np.concatenate([np.empty(0, np.int64), *(mine for _, mine in found)])
    columns = {
        name: pa.array(plain(rows.column(name)), pa.int64())
        if pa.types.is_temporal(rows.schema.field(name).type)
        else rows.column(name)
        for name in rows.column_names
        if name != TIME
    }
    return pa.table(columns).take(pa.array(which)).append_column(_START, pa.array(starts))


def _difference_text(one: Function) -> str:
    column = one.columns[0] if one.columns else "*"
    text = f"sum({column})::HUGEINT::BIGINT" if one.word == "sum" else _WORDS[one.word].format(column)
    if one.where is None:
        return text
    where = f" FILTER (WHERE {_condition(one.where)})"
    return text.replace("::", f"{where}::", 1) if "::" in text else text + where


def _condition(tree: Any) -> str:
    match tree:
        case ("and" | "or" as word, left, right):
            return f"({_condition(left)} {word} {_condition(right)})"
        case ("not", part):
            return f"(NOT {_condition(part)})"
        case ("null", column):
            return f"{column} IS NULL"
        case ("in", column, listed):
            return f"{column} IN ({', '.join(map(repr, listed))})"
    operation, column, constant = tree
    number = f"'{constant!r}'::DOUBLE" if isinstance(constant, float) else f"({constant})"
    return f"{column} {operation} {number}"
