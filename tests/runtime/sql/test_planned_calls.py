"""The analysis of a call when Spark plans it, and how the rows of a partition are answered, without Spark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from pyspark.sql.udtf import AnalyzeArgument
from tests.rows import LENGTHS, multiset, split, tables, windows

import skypane as sp
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.sql import row_transfer
from skypane.runtime.spark.sql.analysis import Analyzed
from skypane.runtime.spark.sql.called_query import QUERIES, needed_of, parameters_of
from skypane.runtime.spark.sql.partition_answers import Answering
from skypane.runtime.spark.sql.table_function import handler
from skypane.types import BadInputError, ConfigError
from skypane.windows import Windows

COLUMNS = StructType([
    StructField("ts", TimestampType()),
    StructField("city", StringType()),
    StructField("price", DoubleType()),
    StructField("rating", IntegerType(), nullable=False),
    StructField("local", TimestampNTZType()),
    StructField("cost", DecimalType(10, 2)),
    StructField("day", DateType()),
])  # fmt: skip
ANSWERS = StructType([StructField(field.name, field.dataType) for field in COLUMNS])
"""The same columns, which may all be null: batches of answers say so to Arrow, and Spark needs batches that are alike."""
ARRAY = ArrayType(StringType())


@pytest.fixture(autouse=True)
def shown_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is refused sets the variable, in this process as in a worker: it is put back after each test."""
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")


def offers(columns: StructType = COLUMNS) -> AnalyzeArgument:
    return AnalyzeArgument(columns, None, isTable=True, isConstantExpression=False)


def constant(value: object, kind: DataType | None = None) -> AnalyzeArgument:
    kinds: dict[type, DataType] = {str: StringType(), int: IntegerType(), bool: BooleanType(), list: ARRAY}
    return AnalyzeArgument(
        kind or kinds.get(type(value), StringType()), value, isTable=False, isConstantExpression=True
    )


def planned(kind: str, *arguments: object, table: AnalyzeArgument | None = None, **named: Any) -> Analyzed:
    call: Any = handler(kind)
    found: Analyzed = call.analyze(
        table or offers(), *map(constant, arguments), **{name: constant(value) for name, value in named.items()}
    )
    return found


def sent(analysis: Analyzed) -> dict[str, str]:
    """The SQL of each column that is sent and read, by its name."""
    assert analysis.answering is not None
    every = {one.alias or one.name.strip("`"): one.name for one in analysis.select}
    return {name: every[name] for name in every if name in analysis.answering.schema.names}


def test_rows_keep_their_columns_and_come_to_one_partition():
    analysis = planned("skyline", "price MIN, rating MAX")
    assert analysis.schema == ANSWERS
    assert (analysis.withSinglePartition, analysis.partitionBy) == (True, [])
    assert list(sent(analysis)) == COLUMNS.names


def test_windows_are_the_first_columns_of_the_answers():
    analysis = planned("skyline", "price MIN", time="ts", window="1 hour", slide="10 minutes")
    assert analysis.schema.names == ["window_start", "window_end", *COLUMNS.names]
    assert [field.dataType for field in analysis.schema.fields[:2]] == [TimestampType()] * 2
    local_time = planned("skyline", "price MIN", time="local", window="1 hour")
    assert [field.dataType for field in local_time.schema.fields[:2]] == [TimestampNTZType()] * 2


def test_an_aggregate_reads_its_columns_only():
    analysis = planned("aggregate", "count(*) AS n, sum(price) FILTER (WHERE rating > 3) AS total", by="city")
    assert analysis.schema.simpleString() == "struct<city:string,n:bigint,total:double>"
    assert list(sent(analysis)) == ["city", "price", "rating"]
    assert list(sent(planned("aggregate", "count(*)"))) == ["row"]


@pytest.mark.parametrize(("kind", "argument"), [
    ("skyline", "price MIN"), ("skyline", "price * 2 MIN, -rating MAX, cost + 1 MIN"),
    ("aggregate", "count(*) AS n"), ("aggregate", "sum(price) AS n"),
])  # fmt: skip
def test_spark_finds_the_value_of_the_partition_where_it_looks_for_it(kind: str, argument: str):
    """It looks at the place behind as many columns as the table has; its own value comes after those that are selected."""
    analysis = planned(kind, argument, by="city")
    names = [one.alias or one.name.strip("`") for one in analysis.select]
    received = [*[one.name for one in analysis.select], analysis.partitionBy[0].name]
    assert received[len(COLUMNS)] == analysis.partitionBy[0].name
    assert len({name.lower() for name in names}) == len(names)


@pytest.mark.parametrize(
    ("kind", "arguments", "named", "keys"),
    [
        ("skyline", ("price MIN",), {"by": "city"}, "`city`"),
        ("skyline", ("price MIN, day DIFF",), {"by": "city"}, None),
        ("skyline", ("price MIN",), {"by": "upper(city)"}, "(upper(city))"),
        ("skyline", ("price MIN",), {"by": "`city`"}, "`city`"),
        ("aggregate", ("count(*) AS n",), {"by": "`city`"}, "`city`"),
        ("k_dominant", (1, "price MIN"), {"by": ["city", "day"]}, "`city`, `day`"),
        ("top_delta", (1, "price MIN"), {"by": "city"}, "`city`"),
        ("top_k", (3, "price"), {"by": "city"}, "`city`"),
        ("aggregate", ("count(*) AS n",), {"by": "city"}, "`city`"),
    ],
)
def test_groups_are_answered_in_separate_partitions(
    kind: str, arguments: Sequence[object], named: Mapping[str, Any], keys: str | None
):
    analysis = planned(kind, *arguments, **named)
    assert not analysis.withSinglePartition
    (column,) = analysis.partitionBy
    if keys is None:  # of by and DIFF, in an order of their own
        assert {"`city`", "`day`"} <= set(column.name[len("pmod(hash(") :].split("), ")[0].split(", "))
    else:
        assert column.name == f"pmod(hash({keys}), 32)"


def test_the_largest_of_all_keys_are_found_in_one_partition():
    analysis = planned("aggregate", "count(*) AS n", by="city", top=2, rank_by="n")
    assert (analysis.withSinglePartition, analysis.partitionBy) == (True, [])


def test_tumbling_windows_are_divided_and_overlapping_ones_are_not():
    assert "unix_micros(`ts`)" in planned("skyline", "price MIN", time="ts", window="1 hour").partitionBy[0].name
    others: list[dict[str, Any]] = [{"time": "ts", "slide": "10 minutes"}, {"time": "local"}]
    for named in others:
        assert planned("skyline", "price MIN", window="1 hour", **named).withSinglePartition


@given(st.integers(-(2**63), 2**63 - 1), windows(LENGTHS))
def test_the_partition_of_a_tumbling_window_is_that_of_its_number(time: int, shape: Windows):
    """DuckDB evaluates the SQL with Spark's functions, where a number out of 64 bits is an error, too."""
    length, offset = (f"{number} us" for number in (shape.length, shape.offset))
    (column,) = planned("skyline", "price MIN", time="ts", window=length, offset=offset).partitionBy
    sql = (
        re.sub(r"(\d)L", r"\1", column.name).replace(" div ", " // ").replace("unix_micros(`ts`)", f"({time})::BIGINT")
    )
    connection = duckdb.connect()
    connection.execute("CREATE MACRO pmod(a, b) AS CASE WHEN a % b < 0 THEN a % b + b ELSE a % b END")
    reduced = shape.offset % shape.length
    assert connection.execute(f"SELECT {sql}").fetchall() == [((time - reduced) // shape.length % 32,)]


def test_rows_are_reduced_where_they_are_and_combined_by_a_second_call():
    analysis = planned("skyline", "price * 2 MIN", by="city", time="ts", window="1 hour", local=True)
    assert (analysis.withSinglePartition, analysis.partitionBy) == (False, [])
    assert analysis.schema == ANSWERS


def test_an_expression_is_a_column_that_is_sent_and_not_answered():
    analysis = planned("skyline", "price * 2 MIN, -cost MAX", invalid="drop")
    assert analysis.schema == ANSWERS
    assert sent(analysis)["price * 2"] == "(price * 2)"
    assert sent(analysis)["-cost"] == "(-cost)"


def test_an_expression_is_in_parentheses_where_spark_takes_no_alias():
    """To Spark, "city street" is the column city under another name: a misspelt column would be another one."""
    for analysis in (
        planned("skyline", "price MIN", by="city street", invalid="drop"),
        planned("aggregate", "count(*) FILTER (WHERE city street) AS n", invalid="drop"),
    ):
        assert sent(analysis)["city street"] == "(city street)"


def test_a_name_of_any_letters_is_quoted():
    columns = StructType([StructField("a.b`c 'd", DoubleType()), StructField("unit price", DoubleType())])
    analysis = planned("skyline", "`a.b``c 'd` MIN, `unit price` MAX", table=offers(columns))
    assert analysis.schema == columns
    assert [one.alias for one in analysis.select] == columns.names
    assert analysis.select[0].name.startswith(
        r"CASE WHEN `a.b``c 'd` IS NULL OR isnan(`a.b``c 'd`) THEN raise_error('cannot rank rows whose a.b`c \'d is"
    )
    (column,) = planned("skyline", "`unit price` MIN", by="a.b`c 'd", table=offers(columns)).partitionBy
    assert column.name == "pmod(hash(`a.b``c 'd`), 32)"


def test_an_interval_is_a_length_of_time():
    interval = constant(timedelta(hours=1))
    call: Any = handler("skyline")
    analysis: Analyzed = call.analyze(offers(), constant("price MIN"), time=constant("ts"), window=interval)
    assert analysis.answering is not None
    assert analysis.answering.plan is not None
    assert analysis.answering.plan.windows == Windows.of("1 hour")


def test_null_stands_for_the_default():
    assert planned("skyline", "price MIN", by=None).withSinglePartition


def test_each_query_is_a_function_with_the_arguments_of_its_constructor():
    assert list(QUERIES) == ["aggregate", "k_dominant", "top_delta", "skyline", "top_k"]
    assert " ".join(parameters_of("top_k")) == "k score by largest time window slide offset invalid local"
    assert parameters_of("aggregate")[:4] == ("functions", "by", "time", "required")


WRONG: Mapping[str, tuple[str, Sequence[object], Mapping[str, Any], str]] = {
    "column": ("skyline", ("prise MIN",), {}, "skypane_skyline: column 'prise' does not exist; did you mean 'price'?"),
    "by": ("skyline", ("price MIN",), {"by": "town"}, "skypane_skyline: column 'town' does not exist; "),
    "time": ("skyline", ("price MIN",), {"time": "tz", "window": "1 hour"}, "skypane_skyline: column 'tz' does not exist"),
    "kind of time": ("skyline", ("price MIN",), {"time": "day", "window": "1 hour"}, "time column 'day' is of type date32"),
    "type": ("skyline", ("city MIN",), {}, "column 'city' of type string is text"),
    "argument": ("skyline", ("price MIN",), {"bye": "city"}, "there is no argument 'bye'; did you mean 'by'?"),
    "missing": ("top_k", (3,), {}, "skypane_top_k: score is missing"),
    "twice": ("skyline", ("price MIN",), {"preference": "price MIN"}, "preference is given twice"),
    "too many": ("skyline", ("price MIN", *["city"] * 9), {}, "got 11 arguments; there are table, preference, by"),
    "by of no name": ("skyline", ("price MIN",), {"by": " "}, "by must name a column, got ' '"),
    "time of no name": ("skyline", ("price MIN",), {"time": "", "window": "1 hour"}, "time must name a column, got ''"),
    "by with a comma": ("skyline", ("price MIN",), {"by": "city, day"}, "by: 'city, day' has a comma; several columns are an array"),
    "required with a comma": ("aggregate", ("count(*)",), {"required": "city, day"}, "required: 'city, day' has a comma"),
    "having": ("aggregate", ("count(*) FILTER (WHERE city LIKE 'B%') AS n",), {"having": "m > 1"}, "column 'm' does not exist"),
    "having of Spark": ("aggregate", ("count(*) FILTER (WHERE city LIKE 'B%') AS n",), {"having": "abs(n) > 1"}, "having='abs(n) > 1'"),
    "k": ("top_k", ("3", "price"), {}, "k must be a whole number, got '3'"),
    "k of false": ("top_k", (True, "price"), {}, "k must be a whole number, got True"),
    "decimal k": ("top_k", (Decimal("2.5"), "price"), {}, "k must be a whole number"),
    "by of numbers": ("skyline", ("price MIN",), {"by": [1]}, "by must be a text or an array of texts, got [1]"),
    "slide alone": ("skyline", ("price MIN",), {"slide": "1 hour"}, "slide needs window"),
    "time alone": ("skyline", ("price MIN",), {"time": "ts"}, "time needs window"),
    "window alone": ("skyline", ("price MIN",), {"window": "1 hour"}, "window needs time"),
    "length": ("skyline", ("price MIN",), {"time": "ts", "window": "1 hoor"}, "window: unknown unit 'hoor'"),
    "invalid": ("skyline", ("price MIN",), {"invalid": "skip"}, "invalid must be 'error' or 'drop', got 'skip'"),
    "preference": ("skyline", ("price",), {}, "expected MIN, MAX, DIFF or AROUND after column 'price'"),
    "function": ("aggregate", ("summ(price)",), {}, "functions: unknown aggregate function 'summ'"),
    "expression": ("aggregate", ("sum(price * 2)",), {}, "'price * 2' is not a column, and the type of an expression"),
    "key": ("aggregate", ("count(*)",), {"by": "upper(city)"}, "by: 'upper(city)' is not a column"),
    "computed time": ("skyline", ("price MIN",), {"time": "ts + 1", "window": "1 hour"}, "time: 'ts + 1' is not a column"),
    "code": ("aggregate", ("accumulate(os.path())",), {}, "os.path names code of a module"),
    "two names": ("aggregate", ("count(*), count(*)",), {}, "'count(*)' is twice the name of a column"),
    "empty": ("aggregate", ("count(*),",), {}, "functions: 'count(*),' has a place without a function"),
    "two conditions": ("aggregate", ("sum(price, where=rating > 1) FILTER (WHERE rating > 2)",), {}, "where and FILTER"),
    "local": ("aggregate", ("count(*)",), {"local": True}, "local is for queries whose answers are rows"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_an_error_is_one_line_that_names_function_argument_and_column(case: str):
    kind, arguments, named, message = WRONG[case]
    with pytest.raises(ConfigError) as refused:
        planned(kind, *arguments, **named)
    said = str(refused.value)
    assert said.startswith(f"skypane_{kind}: ")
    assert message in said
    assert "\n" not in said


NEEDED = {"preference": "price MIN", "k": 1, "delta": 1, "score": "price", "functions": "count(*)"}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in QUERIES for name in parameters_of(kind)])
def test_the_type_of_each_constant_is_checked(kind: str, name: str):
    given: dict[str, Any] = {need: NEEDED[need] for need in needed_of(kind)} | {"time": "ts", "window": "1 hour"}
    with pytest.raises(ConfigError, match=rf"^skypane_{kind}: {name} must be "):
        planned(kind, **(given | {name: [1]}))


def test_an_argument_that_depends_on_rows_is_refused():
    call: Any = handler("skyline")
    rating = AnalyzeArgument(IntegerType(), None, isTable=False, isConstantExpression=False)
    with pytest.raises(ConfigError, match="preference must be a constant, got an expression of type int"):
        call.analyze(offers(), rating)
    with pytest.raises(ConfigError, match="by must be a constant, got a table"):
        call.analyze(offers(), constant("price MIN"), offers())
    with pytest.raises(ConfigError, match=r"the first argument must be a table: write TABLE\(offers\)"):
        call.analyze(constant("offers"), constant("price MIN"))


def test_columns_that_spark_cannot_distinguish_or_send_are_named():
    twice = StructType([StructField("price", DoubleType()), StructField("Price", DoubleType())])
    with pytest.raises(ConfigError, match="columns 'price' and 'Price' of the table are the same"):
        planned("skyline", "price MIN", table=offers(twice))


def answers_of(answering: Answering, rows: Sequence[pa.Table]) -> list[pa.Table]:
    """The answers of a partition that receives these rows."""
    instance = answering.begin(rows[0].schema)
    for part in rows:
        for batch in part.to_batches():
            instance.absorb(batch)
    return [pa.Table.from_batches([batch]) for batch in instance.answers()]


def bag(answers: list[pa.Table]) -> Counter[str]:
    return multiset([row for answer in answers for row in answer.to_pylist()])


def answering(query: Query, rows: pa.Table, plan: Plan | None = None, **other: Any) -> Answering:
    given = Answering(query, plan, "drop", local=False, hidden=(), unchecked=False, schema=rows.schema)
    return replace(given, **other)


QUERIES_OF_XY = [
    sp.Skyline("x MIN, y MAX"),
    sp.Skyline("x MIN, y MAX", "label"),
    sp.TopK(3, "x - y"),
    sp.KDominant(1, "x MIN, y MAX"),
    sp.TopDelta(2, "x MIN, y MAX"),
    sp.Aggregate("y", n=sp.count(), total=sp.sum("x"), median=sp.median("x")),
]


@pytest.mark.parametrize("query", QUERIES_OF_XY, ids=str)
@given(rows=tables(clean=False), cuts=st.lists(st.integers(0, 25), max_size=4))
def test_a_partition_is_answered_as_the_query_answers_its_rows(query: Query, rows: pa.Table, cuts: list[int]):
    parts = split(rows, [cut for cut in cuts if cut <= rows.num_rows])
    wanted = multiset(query.lower(query.lift(usable_rows(rows, query))))
    assert bag(answers_of(answering(query, rows), parts)) == (wanted if rows.num_rows else multiset([]))


@pytest.mark.parametrize("query", QUERIES_OF_XY, ids=str)
@given(rows=tables(clean=False), shape=windows(LENGTHS), cuts=st.lists(st.integers(0, 25), max_size=4))
def test_windows_of_a_partition_are_answered_as_defined(query: Query, rows: pa.Table, shape: Windows, cuts: list[int]):
    plan = Plan(query, shape, "time", sp.Watermark("20 seconds"))
    parts = split(rows, [cut for cut in cuts if cut <= rows.num_rows])
    wanted = [one.rows for step in local.run(plan, [rows, local.Drain()]) for one in step.answers]
    assert bag(answers_of(answering(query, rows, plan), parts)) == bag(wanted)


@pytest.mark.parametrize("query", QUERIES_OF_XY[:-1], ids=str)
@given(rows=tables(), cuts=st.lists(st.integers(0, 25), max_size=4))
def test_what_tasks_keep_alone_has_the_same_answer(query: Query, rows: pa.Table, cuts: list[int]):
    parts = split(rows, [cut for cut in cuts if cut <= rows.num_rows])
    kept = [one for part in parts for one in answers_of(answering(query, rows, local=True), [part])]
    once = answers_of(answering(query, rows), kept or [rows])
    whole = answers_of(answering(query, rows), [rows])
    assert sum(one.num_rows for one in kept) <= rows.num_rows
    assert bag(once) == bag(whole)


def usable_rows(rows: pa.Table, query: Query) -> pa.Table:
    """The rows without a null or NaN where the query needs a value."""
    needed = list(query.required)
    kept = [all(row[name] is not None and row[name] == row[name] for name in needed) for row in rows.to_pylist()]
    return rows.filter(pa.array(kept, pa.bool_()))


def test_rows_that_cannot_be_ranked_fail_the_query_unless_they_may_be_dropped():
    rows = pa.table({"x": [1.0, None], "y": [1.0, 1.0]})
    strict = answering(sp.Skyline("x MIN, y MAX"), rows, invalid="error")
    with pytest.raises(BadInputError, match="cannot rank 1 rows with null x"):
        answers_of(strict, [rows])


def test_the_type_of_an_expression_is_checked_with_the_first_rows():
    analysis = planned("skyline", "upper(city) MIN")
    assert analysis.answering is not None
    rows = pa.table({**{name: [] for name in COLUMNS.names}, "upper(city)": pa.array([], pa.string())})
    with pytest.raises(ConfigError, match=r"column 'upper\(city\)' of type string is text"):
        analysis.answering.begin(rows.schema)


def test_where_spark_sends_single_rows_times_are_sent_as_numbers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("skypane.runtime.spark.sql.analysis.BY_COLUMNS", False)
    analysis = planned("top_k", 1, "price", invalid="drop")
    assert sent(analysis)["ts"] == "unix_micros(`ts`)"
    computed = sent(planned("skyline", "price * 2 MIN", invalid="drop"))["price * 2"]
    assert computed == "named_struct('kind', typeof((price * 2)), 'value', (price * 2))"
    nested = StructType([StructField("price", DoubleType()), StructField("seen", ArrayType(TimestampType()))])
    with pytest.raises(ConfigError, match="column 'seen' holds times with zone inside of"):
        planned("top_k", 1, "price", table=offers(nested))
    assert not row_transfer.as_integer("x", DoubleType()).startswith("unix")
