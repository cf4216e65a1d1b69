"""Conditions that workers evaluate, against DuckDB, and what they leave to Spark."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skypane as sp
from skypane.operators.aggregates.condition import Condition
from skypane.operators.aggregates.having import AnswerFilter
from skypane.types import ConfigError

ROWS = pa.table({
    "n": pa.array([0, 1, 2, 3, None], pa.int64()),
    "total": pa.array([1.5, -2.0, None, 4.0, 2.5]),
    "shop": pa.array(["a", "it's", None, "B", "a b"]),
    "open": pa.array([True, None, False, True, False]),
})  # fmt: skip

ATOMS = st.sampled_from([
    "n = 3", "n <> 1", "3 > n", "total >= 1.5", "n<-1", "n >= - 1", "total != 4", "total = 15e-1", "`shop` <> 'a b'", "shop != 'B'",
    "shop IN ('it', 'B')", "shop <> ''", "shop IN ('a')", "shop in ('a', 'B')", "n NOT IN (1, 2)", "shop IS NULL", "total is not null", "open", "open = TRUE", "(n > 1)", "-2.0 = total",
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
def test_a_condition_in_sql_keeps_the_rows_that_sql_keeps(condition: str):
    wanted = duckdb.from_arrow(ROWS).filter(condition.replace("`", '"')).to_arrow_table()
    found = AnswerFilter(having=condition).of(ROWS)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


@pytest.mark.parametrize(
    "sql",
    [
        "n = 1 = open", "total = n IS NULL", "n < total = TRUE", "shop = 'it''s'", "shop LIKE 'a%'", "n BETWEEN 1 AND 2", "abs(n) = 1",
        "n = NULL", "a || 'b' = 'c'", "'\\\\' = shop", "n <=> 1", "n = 3L", "n = 3and open", 'shop = "a"', "shop = 'a' 'b'", "shop = '${a}'",
        "n + 1 = 2", "-n = 1", "n = +1", "n = --1", "n = 1 -- one", "n = 1 /* one */", "µ = 1", "a.n = 1", "1 = 1", "n IN ()",
        "current_date = n", "n = 1e999", "n = 9223372036854775808", "(n) = 1", "(n = 3) = open", "n\u00a0= 1", "``= 1", "n =", "", "n IS NOT 1",
        "NOT " * 200 + "open", "n NOT 1",
    ],
)  # fmt: skip
def test_what_sql_reads_otherwise_or_by_its_settings_is_not_read_here(sql: str):
    with pytest.raises(ConfigError, match="having="):
        AnswerFilter(having=sql).of(ROWS)


D = Decimal


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array([3], pa.int8()), {"c = 300": 0, "c < 300": 1, "c IN (3, 300)": 1, "c = 3.0": None, "c = 'x'": None, "c": None}),
        (pa.array([2**53 + 1]), {"c = 9007199254740993": 1, "c <> 9007199254740992": 1, "c > 9007199254740992.0": None}),
        (pa.array([0.3]), {"c = 0.3": 1, "c > 0": 1, "c = 3e-1": 1, "c IN (0.3)": None, "c = '0.3'": None}),
        (pa.array([0.3], pa.float32()), {"c = 0.3": None, "c > 0": None, "c IS NULL": 0}),
        (pa.array([D("0.35")], pa.decimal128(18, 2)), {"c = 0.35": 1, "c < 0.350001": 1, "c = 1": 0, "c = 35e-2": None}),
        (pa.array([D("0.1")], pa.decimal128(38, 18)), {"c = 0.1": 1, "c <> 0.1": 0, "c > 0." + "1" * 19: None, "c < 3": 1}),
        (pa.array([D(1)], pa.decimal128(38, 0)), {"c = 1": 1, "c = 1.0": None}),
        (pa.array(["a"], pa.large_string()), {"c = 'a'": 1, "c IN ('b')": 0, "c > 1": None, "c = TRUE": None}),
        (pa.array([True]), {"c": 1, "NOT c": 0, "c <> FALSE": 1, "c = 1": None}),
        (pa.array([0], pa.date32()), {"c > '1969-01-01'": None, "c = c": 1, "c IS NOT NULL": 1}),
        (pa.array([b"a"]), {"c = 'a'": None, "c = c": None}),
    ],
)  # fmt: skip
def test_each_type_is_compared_with_the_literals_that_spark_compares_alike(
    column: pa.Array, texts: dict[str, int | None]
):
    rows = pa.table({"c": column})
    found = {
        text: int(Condition(text).holds(rows).sum()) if Condition(text).fits(rows.schema) else None for text in texts
    }
    assert found == texts


def test_columns_are_compared_with_columns_of_the_same_type():
    kinds = {
        "i": pa.int8(), "l": pa.int64(), "x": pa.float64(), "d": pa.decimal128(18, 2), "e": pa.decimal128(38, 30),
        "day": pa.date32(), "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"),
    }  # fmt: skip
    schema = pa.schema(list(kinds.items()))
    alike = {
        (one, other) for one in kinds for other in kinds if one < other and Condition(f"{one} = {other}").fits(schema)
    }
    assert alike == {("i", "l")}


def test_names_that_sql_may_take_for_others_are_left_to_spark():
    assert not Condition("n = 1").fits(pa.schema({"N": pa.int64()}))
    assert not Condition("n = 1").fits(pa.schema({"n": pa.int64(), "N": pa.int64()}))
    assert Condition("`a``b` = 1 AND _column_0 = 2").columns == ("a`b", "_column_0")


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
