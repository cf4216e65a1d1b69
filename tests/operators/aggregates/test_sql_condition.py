"""Conditions in SQL that workers evaluate, against DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import skypane as sp
from skypane.operators.aggregates.having import AnswerFilter
from skypane.operators.aggregates.sql_condition import in_python
from skypane.types import ConfigError

ROWS = pa.table({
    "n": pa.array([0, 1, 2, 3, None], pa.int64()),
    "total": pa.array([1.5, -2.0, None, 4.0, 2.5]),
    "shop": pa.array(["a", "it's", None, "B", "a b"]),
    "open": pa.array([True, None, False, True, False]),
})  # fmt: skip

ATOMS = st.sampled_from([
    "n = 3", "n <> 1", "n != total", "total >= 1.5", "-n < -1", "n + 1 = 2", "n * 2 - 1 > total", "shop = 'it''s'", "`shop` <> 'a b'",
    "shop != 'it''s'", "shop IN ('it''s', 'B')", "shop <> ''", "(n = 3) = open", "shop IN ('a')", "shop in ('a', 'B')", "n NOT IN (1, 2)", "shop IS NULL", "total is not null", "open", "open = TRUE", "(n > 1)",
])  # fmt: skip
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" AND ", " or "]), inner).map("".join),
        inner.map(lambda one: f"NOT ({one})"),
        inner.map(lambda one: f"( {one} )"),
    ),
    max_leaves=5,
)


@given(CONDITIONS)
@example("shop != 'it''s'")
def test_a_condition_in_sql_keeps_the_rows_that_sql_keeps(condition: str):
    wanted = duckdb.from_arrow(ROWS).filter(condition.replace("`", '"')).to_arrow_table()
    found = AnswerFilter(having=condition).of(ROWS)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


@pytest.mark.parametrize(
    "sql",
    [
        "n = 1 = open",
        "total = n IS NULL",
        "n < total = TRUE",
        "shop = 'it''s' OR shop LIKE 'a%'",
        "shop LIKE 'a%'",
        "n BETWEEN 1 AND 2",
        "abs(n) = 1",
        "n = NULL",
        "a || 'b' = 'c'",
        "'\\\\' = shop",
        "n <=> 1",
    ],
)
def test_what_workers_cannot_evaluate_is_still_refused(sql: str):
    with pytest.raises(ConfigError, match="having="):
        AnswerFilter(having=sql).of(ROWS)


@given(CONDITIONS)
def test_a_condition_on_rows_is_the_same(condition: str):
    """A condition in `where` is evaluated without Spark, too."""
    query = sp.Aggregate(n=sp.count(where=condition))
    (found,) = query.lower(query.lift(ROWS)).to_pylist()
    assert found["n"] == AnswerFilter(having=condition).of(ROWS).num_rows


def test_an_aggregate_of_a_stream_takes_sql():
    query = sp.Aggregate("shop", n=sp.count(), having="n > 1 AND shop IS NOT NULL")
    query.validate(ROWS.schema)
    rows = pa.table({"shop": ["a", "a", None, None, "b"]})
    assert query.lower(query.lift(rows)).to_pylist() == [{"shop": "a", "n": 2}]
    assert in_python("n > 1 and 'x") is None
