"""DuckDB's answers to aggregates: a second opinion on the definition, of the functions that mean the same there, to the last bit."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from tests.differential.case import TIME, Aggregate, Case, Function
from tests.differential.compare import values_differ
from tests.differential.definition.values import key, lines, plain
from tests.differential.definition.windows import members, times, usable
from tests.differential.expected import Values
from tests.differential.objects import condition

_START: Final = "start_of_window"
_WORDS: Final = {"count": "count({})", "min": "min({})", "max": "max({})", "count_distinct": "count(DISTINCT {})"}


def difference(case: Case, wanted: Values) -> str | None:
    """Return how DuckDB's answers differ from what the definition gives for an aggregate of any rows, or None."""
    spec = case.spec
    assert isinstance(spec, Aggregate)
    functions = [one for one in spec.functions if _is_known(case, one)]
    if not functions or spec.at_least is not None or spec.top is not None:
        return None
    found = [(row[_START], row) for row in _answered(case, functions)]
    return values_differ(spec.by, functions, wanted.rows, found, lambda mine, theirs: bool(key(mine) == key(theirs)))


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
    return lines(answered)


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
    where = f" FILTER (WHERE {condition(one.where, _constant)})"
    return text.replace("::", f"{where}::", 1) if "::" in text else text + where


def _constant(number: Any) -> str:
    return f"'{number!r}'::DOUBLE" if isinstance(number, float) else f"({number})"
