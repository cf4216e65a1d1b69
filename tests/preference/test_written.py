"""Expressions in place of columns, before Spark has seen any rows: SQL, and Columns of Spark Connect, made without a session."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import skypane as sp
from skypane.operators.aggregates import constructors
from skypane.operators.aggregates.functions import Function
from skypane.operators.aggregates.wide_states import DistinctPart
from skypane.operators.fronts import ContinuousSkyline
from skypane.preference.written import Key, Written, as_alias, expressions, name_in, named
from skypane.types import ConfigError, Length

pytest.importorskip("grpc", reason="columns of Spark Connect")

from pyspark.sql.connect.functions import col, lit, udf, upper

TWICE, WHO = col("price") * 2, upper(col("shop"))


def key(column: Any) -> Key:
    (written,) = expressions(sp.low(column))
    return written.key


NAMES = {key("price * 2"): "a", key(TWICE): "b", key("-price"): "c", key(WHO): "d"}
#: queries of expressions, and of the names in NAMES
QUERIES: dict[str, tuple[Any, Any]] = {
    "skyline": (
        sp.Skyline(sp.low("price * 2") * sp.high(TWICE) & sp.around("-price", 3), (WHO, "city")),
        sp.Skyline(sp.low("a") * sp.high("b") & sp.around("c", 3), ("d", "city")),
    ),
    "groups": (sp.Skyline(sp.diff(WHO) * sp.low(TWICE)), sp.Skyline(sp.diff("d") * sp.low("b"))),
    "k-dominant": (sp.KDominant(1, sp.low("price * 2") * sp.low(TWICE)), sp.KDominant(1, sp.low("a") * sp.low("b"))),
    "top-delta": (sp.TopDelta(1, sp.low("price * 2"), WHO), sp.TopDelta(1, sp.low("a"), "d")),
    "top-k": (sp.TopK(3, "rating", ("-price", WHO)), sp.TopK(3, "rating", ("c", "d"))),
    "continuous": (
        ContinuousSkyline(sp.low(TWICE), Written("price * 2", "time"), Length(60), WHO),
        ContinuousSkyline(sp.low("b"), "a", Length(60), "d"),
    ),
    "aggregate": (
        sp.Aggregate((WHO, "city"), time="price * 2", required="-price", n=sp.sum(TWICE), last=sp.last("price")),
        sp.Aggregate(("d", "city"), time="a", required="c", n=sp.sum("b"), last=sp.last("price")),
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_with_names_in_place_of_its_expressions_is_the_query_of_these_names(name: str):
    query, plain = QUERIES[name]
    assert named(query, NAMES) == plain
    assert named(query, NAMES).describe() == plain.describe()
    assert not [*expressions(named(query, NAMES))]


def test_a_query_of_names_stays_the_same_object():
    query = sp.Aggregate("shop", time="at", total=sp.sum("price"), last=sp.last("price"))
    assert named(query, {}) is query


FUNCTIONS = {
    name: function
    for name, function in vars(constructors).items()
    if inspect.isfunction(function) and function.__module__ == constructors.__name__ and not name.startswith("_")
}
COLUMNS = {"column", "columns", "order"}
TAKE_COLUMNS = [name for name, function in FUNCTIONS.items() if COLUMNS & inspect.signature(function).parameters.keys()]


@pytest.mark.parametrize("name", TAKE_COLUMNS)
@pytest.mark.parametrize("written", ["price * 2", TWICE], ids=["sql", "column"])
def test_each_function_takes_an_expression_in_place_of_each_column(name: str, written: Any):
    function, plain = (called(FUNCTIONS[name], column) for column in (written, "x"))
    found = [*expressions(function)]
    assert found
    assert named(function, {found[0].key: "x"}) == plain
    assert sp.Aggregate(n=function) != sp.Aggregate(n=plain)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("where", ["shop LIKE 'a%'", "price % 2 = 0", col("price") > 1, col("paid")], ids=str)
def test_each_function_takes_a_condition_of_spark(name: str, where: Any):
    """A condition that workers evaluate stays one."""
    conditional = partial(called, FUNCTIONS[name], "x")
    assert not [*expressions(conditional("price > 1 and paid"))]
    written = conditional(where)
    (found,) = expressions(written)
    assert found.argument == ("count_if" if name == "count_if" else "where")
    assert named(written, {found.key: "paid"}) == conditional("paid")
    for unusual in ("the name", "or", "(price > 1)"):
        assert named(written, {found.key: unusual}) == conditional(f"`{unusual}`")


@pytest.mark.parametrize("where", [3, object, b"price"])
def test_another_condition_is_refused(where: Any):
    with pytest.raises(ConfigError, match="where must be a text or a Spark Column, got"):
        sp.count(where=where)


def called(function: Callable[..., Function], column: Any, where: Any = None) -> Function:
    """Return the aggregate function whose columns are all `column`."""
    others: dict[str, Any] = {
        "percentage": 0.5,
        "function": len,
        "returns": pa.int64(),
        "accumulator": DistinctPart("x"),
    }
    others |= {"where": where, "condition": where}
    positional, named_ones = [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        value = column if name in COLUMNS else others.get(name, parameter.default)
        if parameter.kind is parameter.KEYWORD_ONLY:
            named_ones[name] = value
        else:
            positional.append(value)
    return function(*positional, **named_ones)


def test_an_expression_knows_the_argument_and_the_column_that_was_written():
    (text,) = expressions(sp.Aggregate("upper(shop)", n=sp.count()))
    (column,) = expressions(sp.Aggregate(n=sp.count(), required=TWICE))
    assert (text, text.argument, text.column) == ("upper(shop)", "by", None)
    assert (column.argument, column.column) == ("required", TWICE)
    assert "price" in column


def test_columns_that_show_themselves_alike_are_two_expressions():
    """A text shows itself as the column of its name does."""
    a, b = (next(expressions(sp.low(column))) for column in (col("price"), lit("price")))
    assert a == b
    assert a.key != b.key


@pytest.mark.parametrize("name", ["price", "_x1", "größe"])
def test_an_identifier_is_a_name_and_no_expression(name: str):
    assert not [*expressions(sp.low(name))]


def test_one_column_under_two_names_is_refused_when_the_names_are_known():
    twice = sp.low("price") * sp.high(col("PRICE"))
    (written,) = expressions(twice)
    with pytest.raises(ConfigError, match="column 'price' is named twice"):
        named(twice, {written.key: "price"})
    aggregate = sp.Aggregate(("price", col("PRICE")), n=sp.count())
    with pytest.raises(ConfigError, match="by names the column 'price' twice"):
        named(aggregate, {next(expressions(aggregate)).key: "price"}).validate(pa.schema([("price", pa.int64())]))
    aggregate = sp.Aggregate(col("x").alias("n"), n=sp.count())
    with pytest.raises(ConfigError, match="'n' is a column of by and an aggregate"):
        named(aggregate, {next(expressions(aggregate)).key: "N"}).validate(pa.schema([("N", pa.int64())]))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda query: pickle.loads(pickle.dumps(query))])  # noqa: S301
def test_sql_survives_a_copy_and_a_column_of_a_session_does_not(copied: Callable[[Any], Any]):
    (text,) = expressions(copied(sp.low("price * 2")))
    assert (text, text.argument) == ("price * 2", "low()")
    (column,) = expressions(copied(sp.low(TWICE)))
    assert column.column is None


def test_without_spark_an_expression_is_a_column_that_does_not_exist():
    with pytest.raises(ConfigError, match=r"column 'price \* 2' does not exist"):
        sp.Skyline(sp.low("price * 2")).validate(pa.schema([("price", pa.int64())]))
    sp.Skyline(sp.low("unit price")).validate(pa.schema([("unit price", pa.int64())]))


@pytest.mark.parametrize(("sql", "name"), [
    ("price * 2", "price * 2"),
    (" upper(shop) ", "upper(shop)"),
    ("price * 2 AS twice", "twice"),
    ("price * 2 as `the price` ", "the price"),
    ("price\nAs\ntwice", "twice"),
    ("CAST(price AS INT)", "CAST(price AS INT)"),
    ("'it is as bad'", "'it is as bad'"),
    ("was AS 1", "was AS 1"),
])  # fmt: skip
def test_the_name_of_a_text_is_its_alias_or_itself(sql: str, name: str):
    assert name_in(sql) == name


@pytest.mark.parametrize("query", [
    lambda a, b: sp.Aggregate((a, b), n=sp.count()),
    lambda a, b: sp.Aggregate(required=(a, b), n=sp.count()),
    lambda a, b: sp.Skyline("rating MIN", (a, b)),
    lambda a, b: sp.Skyline(sp.low(a) * sp.high(b)),
    lambda a, b: sp.TopK(1, "rating", (a, b)),
], ids=["keys", "required", "groups", "criteria", "groups of a score"])  # fmt: skip
def test_columns_that_show_themselves_alike_are_both_kept(query: Callable[[Any, Any], sp.Query]):
    """As the columns of two functions without a name do: Column<'<lambda>(price)'>."""
    of_two: Any = udf(lambda value: value % 2)
    of_three: Any = udf(lambda value: value % 3)
    first, second = of_two("price"), of_three("price")
    assert str(first) == str(second)
    assert [id(written.column) for written in expressions(query(first, second))] == [id(first), id(second)]


@pytest.mark.parametrize(("sql", "called", "meant"), [
    ("city street", "street", "city AS street"),
    (" price  MIN ", "MIN", "price AS MIN"),
    ("upper(city)who", "who", "upper(city) AS who"),
    ("price * 2 `the price`", "the price", "price * 2 AS `the price`"),
    ("price * 2 AS twice", "twice", None),
    ("price * 2 as `the price`", "the price", None),
    ("price", "price", None),
    ("upper(city)", "upper(city)", None),
    ("price * 2", "(price * 2)", None),
    ("both.price", "price", None),
    ("both . `the price`", "the price", None),
    ("CAST(price AS INT)", "price", None),
    ("(price)", "price", None),
])  # fmt: skip
def test_an_alias_without_as_is_found(sql: str, called: str, meant: str | None):
    """Else a mistyped name of two words would be the column of the first."""
    assert as_alias(sql, called) == meant
