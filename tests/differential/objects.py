"""The objects of the package that a case specifies: here alone the plain values of case.py become skypane's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from operator import and_, mul
from typing import Any

import pyarrow as pa
from tests.differential import case as of
from tests.differential.definition.aggregate import APPROXIMATE, SHARES, rises

import skypane as sp
from skypane.operators.fronts import ContinuousSkyline
from skypane.operators.query import Query
from skypane.plan import ContinuousPlan, Plan
from skypane.preference import Preference
from skypane.types import Length
from skypane.windows import Windows


def plan(case: of.Case) -> Plan:
    """Return the plan of a case."""
    one = case.windows
    make: Any = ContinuousPlan if isinstance(case.spec, of.Continuous) else Plan
    source = of.SOURCE if of.SOURCE in case.rows.column_names else None
    windows = Windows(one.length, one.slide, one.offset)
    made: Plan = make(query(case.spec, case.rows.schema), windows, of.TIME, policy(case.policy), source)
    return made


def query(spec: of.Spec, schema: pa.Schema) -> Query:
    """Return the query over rows of `schema`."""
    match spec:
        case of.TopK():
            return sp.TopK(spec.k, score(spec.score), spec.by, largest=spec.largest)
        case of.Aggregate():
            return _aggregate(spec)
    wanted = preference(spec.preference, schema)
    match spec:
        case of.Skyline():
            return sp.Skyline(wanted, spec.by)
        case of.KDominant():
            return sp.KDominant(spec.k, wanted, spec.by)
        case of.TopDelta():
            return sp.TopDelta(spec.delta, wanted, spec.by)
    return ContinuousSkyline(wanted, of.TIME, spec.window, spec.by)


def policy(wanted: of.Policy) -> Any:
    """Return the progress policy."""
    lengths = ("delay", "max_ahead", "max_slack", "max_behind")
    numbers = {
        name: Length(value) if name in lengths and value is not None else value for name, value in wanted.numbers
    }
    return getattr(sp, wanted.word)(**numbers)


def preference(wanted: of.Preference, schema: pa.Schema) -> Preference:
    levels = [
        reduce(mul, (reduce(and_, (_criterion(one, schema) for one in component)) for component in level))
        for level in wanted.levels
    ]
    return reduce(mul, [*(sp.diff(name) for name in wanted.groups), reduce(and_, levels)])


def _criterion(one: of.Criterion, schema: pa.Schema) -> Preference:
    if one.sense != "around":
        return {"low": sp.low, "high": sp.high}[one.sense](one.column)
    kind = schema.field(one.column).type
    return sp.around(one.column, (_target(one.lo, kind), _target(one.hi, kind)))


def _target(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_date(kind):
        return date(1970, 1, 1) + timedelta(days=value)
    if pa.types.is_timestamp(kind):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
        return moment if kind.tz else moment.replace(tzinfo=None)
    return value


def score(tree: Any) -> str:
    """Return the text of a score."""
    if not isinstance(tree, tuple):
        return str(tree)
    parts = [score(part) for part in tree[1:]]
    if tree[0] == "negative":
        return f"(-{parts[0]})"
    return f"({f' {tree[0]} '.join(parts)})" if tree[0] in "+-*/" else f"{tree[0]}({', '.join(parts)})"


def _aggregate(spec: of.Aggregate) -> sp.Aggregate:
    chosen: dict[str, Any] = {} if spec.top is None else {"top": spec.top, "rank_by": "n"}
    functions: dict[str, Any] = {one.name: _function(one) for one in spec.functions}
    return sp.Aggregate(
        spec.by,
        time=of.TIME,
        required=spec.required,
        having=None if spec.at_least is None else f"n >= {spec.at_least}",
        **chosen,
        **functions,
    )


def _rises(rows: pa.Table) -> int:
    return rises(rows.column(0).to_pylist())


def _function(one: of.Function) -> sp.Function:
    where = None if one.where is None else condition(one.where)
    ordered = {"order": one.columns[1]} if len(one.columns) > 1 else {}
    match one.word:
        case "in_order":
            return sp.in_order(_rises, one.columns[0], returns=pa.int64(), where=where, **ordered)
        case "approx_count_distinct" | "approx_quantile":
            return _word(one.word)(one.columns[0], error=APPROXIMATE, where=where)
        case "percentile":
            return sp.percentile(one.columns[0], list(SHARES), where=where)
        case "percentile_approx":
            return sp.percentile_approx(one.columns[0], SHARES[1], where=where)
        case "first" | "last" | "collect_list":
            return _word(one.word)(one.columns[0], where=where, **ordered)
    return _word(one.word)(*one.columns, where=where)


def _word(word: str) -> Callable[..., sp.Function]:
    found: Callable[..., sp.Function] = getattr(sp, word)
    return found


def condition(tree: Any, constant: Callable[[Any], str] = repr) -> str:
    """Return the text of a condition, in which a number is written as `constant` says."""
    match tree:
        case ("and" | "or" as word, left, right):
            return f"({condition(left, constant)} {word} {condition(right, constant)})"
        case ("not", part):
            return f"(not {condition(part, constant)})"
        case ("null", column):
            return f"{column} IS NULL"
        case ("in", column, listed):
            return f"{column} in {tuple(listed)!r}"
    operation, column, number = tree
    return f"{column} {operation} {constant(number)}"
