"""Conditions of aggregates and of their answers are SQL: workers and Spark keep the rows that a filter of Spark keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.rows import multiset
from tests.runtime.named_answers import bags, differing, kept
from tests.runtime.streams import drained

import skypane as sp
from skypane.preference.written import expressions
from skypane.runtime.spark.spark_schema import arrow_schema
from skypane.types import ConfigError

COLUMNS = (
    "id", "timestamp'2026-01-01' + make_dt_interval(0, 0, 0, id) AS ts", "id * 1.5D AS a", "CAST(id AS int) AS b",
    "CAST(id % 3 AS string) AS k", "id % 2 = 0 AS flag", "date'2026-01-01' + CAST(id % 5 AS int) AS d",
    "CAST(id AS decimal(10, 2)) AS cost", "if(id = 7, 1152921504606846976, id) AS big", "nullif(id, 3) AS gap",
    "named_struct('x', id) AS place", "array(id) AS list",
)  # fmt: skip
BY_WORKERS = [
    "k == '1'", "flag", "not flag", "flag == True", "a >= 1e1", "b > -5", "NOT b > 5", "a = 3", "a > 0.5", "cost = 3.50", "cost <> 4", "b < big",
    "gap != 4", "cost > 3.5", "k not in ('0')", "flag = true", "b = 3", "b <> 3", "gap IS NULL", "gap IS NOT NULL", "list IS NULL", "b == 1 or b == 2 and flag", "ts = ts", "b IN (3, 5000000000)",
]  # fmt: skip
"""Comparisons of columns and constants, of types that need no conversion."""
BY_SPARK = [
    "ts > '2026-01-01 00:00:30'", "d = '2026-01-02'", "d > date'2026-01-02'", "ts > d", "k = 1", "k > 0", "a > '5'", "k LIKE '1%'",
    "b BETWEEN 2 AND 5", "b % 2 = 0", "place.x > 3", "list[0] > 3", "k = 'a\\\\b'", "k != '\\x31'",
    'k == "1"', "flag == (b == 2)", "b == 1.0", "b + a > 5", "b / 2 > 3", "big > 0.5", "big * 2.0 > 1", "big + a > 3", "a == big", "big in (1.5, 2)",
    "b * 0.1 > 0.3", "b * 0.1 = 0.3", "cost * 1.1 = 5.5", "cost = a", "B > 5", "k <> 'it''s'", "b > 3 --2", "b == 2 == flag", "3 > 2 == flag", "abs(b) > 5", "coalesce(k, 'x') = '1'", "cost * 100000000000000000000 > 3", "ts >= current_date",
]  # fmt: skip
"""Other SQL, and comparisons of types that SQL converts."""
HAVING = [
    "n > 10", "last > '2026-01-01'", "day = '2026-01-05'", "k = 1", "total / n > 29", "k IN (0, 1)", "n = '20'", "n > 5 AND k = '1'", "last > day",
    "upper(k) = '1'", "most > 0.5",
]  # fmt: skip
REFUSED = ["1 < b < 5", "k in ['1']", "gap is None", "b > 3 # 2", "speed > 3", "b > 1_0"]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Iterator[DataFrame]:
    """Rows of many types, in a session whose days begin elsewhere than those of UTC."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    made = spark.range(60).selectExpr(*COLUMNS).cache()
    made.count()
    yield made
    made.unpersist()
    spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.core
@pytest.mark.parametrize("conditions", [BY_WORKERS, BY_SPARK], ids=["by workers", "by Spark"])
def test_an_aggregate_uses_the_rows_that_spark_keeps(rows: DataFrame, conditions: list[str]):
    functions: dict[str, Any] = {f"n{at}": sp.count(where=one) for at, one in enumerate(conditions)}
    lists: dict[str, Any] = {f"ids{at}": sp.collect_set("id", where=one) for at, one in enumerate(conditions)}
    (found,) = sp.aggregate(rows, **functions, **lists).collect()
    by_spark = kept(rows, dict(zip(conditions, conditions, strict=True)))
    wrong = {}
    for at, one in enumerate(conditions):
        wanted = sorted(by_spark[one]["id"].to_pylist())
        if (found[f"n{at}"], found[f"ids{at}"]) != (len(wanted), wanted):
            wrong[one] = found[f"ids{at}"], wanted
    assert not wrong


def test_workers_evaluate_what_they_can(rows: DataFrame):
    schema = arrow_schema(rows)
    for conditions, by_workers in ((BY_WORKERS, True), (BY_SPARK, False)):
        of = [sp.count(where=one).for_types(schema) for one in conditions]
        assert [
            one for one, count in zip(conditions, of, strict=True) if bool([*expressions(count)]) == by_workers
        ] == []


def test_answers_are_those_that_spark_keeps(rows: DataFrame):
    functions: dict[str, Any] = {
        "n": sp.count(),
        "last": sp.max("ts"),
        "total": sp.sum("b"),
        "day": sp.max("d"),
        "most": sp.max("big"),
    }
    windows: dict[str, Any] = {"time": "ts", "window": "30 seconds"}
    nothing: dict[str, Any] = {}
    for options, some in ((nothing, HAVING), (windows, HAVING[::4])):
        found = bags({one: sp.aggregate(rows, by="k", having=one, **functions, **options) for one in some})
        every = kept(sp.aggregate(rows, by="k", **functions, **options), dict(zip(some, some, strict=True)))
        assert differing(found, {one: multiset(answers) for one, answers in every.items()}) == {}


@pytest.mark.parametrize("condition", REFUSED)
@pytest.mark.parametrize("argument", ["where", "having"])
def test_what_is_not_sql_is_refused_with_the_reason_of_spark(rows: DataFrame, condition: str, argument: str):
    asked: dict[str, Callable[[], DataFrame]] = {
        "where": lambda: sp.aggregate(rows, n=sp.count(where=condition)),
        "having": lambda: sp.aggregate(rows, b=sp.max("b"), k=sp.max("k"), gap=sp.max("gap"), having=condition),
    }
    with pytest.raises(ConfigError, match=rf"^{argument}\b.*Spark can.*\["):
        asked[argument]()


def test_a_condition_whose_types_spark_converts_does_not_go_with_top(rows: DataFrame):
    with pytest.raises(ConfigError, match=r"having=\"last > '2026'\" is evaluated by Spark, after .* top="):
        sp.aggregate(rows, by="k", last=sp.max("ts"), having="last > '2026'", top=1, rank_by="last")


def test_a_stream_evaluates_conditions_of_converted_types(spark: SparkSession, rows: DataFrame, tmp_path: Path):
    rows.select("id", "ts", "k").write.json(str(tmp_path / "in"))
    arriving = spark.readStream.schema("id long, ts timestamp, k string").json(str(tmp_path / "in"))
    query = sp.Aggregate(
        n=sp.count(where="ts > '2026-01-01 00:00:30'"), last=sp.max("ts"), having="last > '2026-01-01 00:00:20'"
    )
    out, state = tmp_path / "out", tmp_path / "state"
    job = sp.stream(arriving, query, time="ts", window="15 seconds", output=str(out), checkpoint=str(state))
    drained(job)
    found = spark.read.parquet(str(out)).orderBy("window_start").select("n").collect()
    assert [row.n for row in found] == [0, 14, 15]


def test_backticks_in_a_text_are_its_own(spark: SparkSession):
    rows = spark.createDataFrame([("`x`", 1), ("y", 2), ("_column_0", 3)], "name string, `a b` long")
    (found,) = sp.aggregate(
        rows,
        one=sp.collect_set("a b", where="name = '`x`'"),
        two=sp.collect_set("a b", where="name != '`x`' AND `a b` > 1"),
        three=sp.collect_set("a b", where='name IN ("`x`", "y") OR `a b` = 3'),
    ).collect()
    assert (found.one, found.two, found.three) == ([1], [2, 3], [1, 2, 3])


def test_a_collation_that_has_no_effect_is_reported(spark: SparkSession, caplog: pytest.LogCaptureFixture):
    rows = spark.createDataFrame([("Cab", "a"), ("cab", "A")], "kind string, name string")
    collated = rows.withColumn("kind", sf.expr("kind COLLATE UTF8_LCASE"))
    assert collated.where("kind = 'CAB'").count() == 2
    assert sorted(row.n for row in sp.aggregate(collated, by="kind", n=sp.count()).collect()) == [1, 1]
    (said,) = [record.getMessage() for record in caplog.records if "collation" in record.getMessage()]
    assert said.startswith("column 'kind' has the collation UTF8_LCASE, which has no effect here")
    assert said.endswith("such as lower(kind) COLLATE UTF8_BINARY")
    caplog.clear()
    lowered = collated.selectExpr("lower(kind) COLLATE UTF8_BINARY AS kind", "name")
    (found,) = sp.aggregate(lowered, by="kind", n=sp.count(where="kind = 'cab'")).collect()
    assert found.n == 2
    assert not [record for record in caplog.records if "collation" in record.getMessage()]


def test_texts_that_spark_does_not_compare_by_bytes_are_compared_by_spark(spark: SparkSession):
    rows = spark.createDataFrame([("Cab", "a  "), ("cab", "A  ")], "kind string, code string")
    padded = sf.col("code").alias("code", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    collated = rows.select(sf.expr("kind COLLATE UTF8_LCASE").alias("kind"), padded)
    conditions = ["kind = 'CAB'", "kind IN ('CAB')", "kind > 'CA'", "code = 'a'"]
    functions: dict[str, Any] = {f"n{at}": sp.count_if(one) for at, one in enumerate(conditions)}
    (found,) = sp.aggregate(collated, **functions).collect()
    assert list(found) == [collated.where(one).count() for one in conditions] == [2, 2, 2, 1]


def test_a_text_in_double_quotes_is_what_spark_is_set_to_read(spark: SparkSession):
    session = spark.newSession()
    rows = session.createDataFrame([("a", "x"), ("b", "x"), ("b", "y")], "s string, q string")
    for quoted, wanted in (("false", 0), ("true", 2)):
        session.conf.set("spark.sql.ansi.enabled", "true")
        session.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", quoted)
        assert sp.aggregate(rows, n=sp.count_if("\"s\" = 'b'")).collect()[0].n == wanted


def test_names_are_those_that_are_written(spark: SparkSession):
    rows = spark.createDataFrame(
        [(1, 9, 1, 9), (9, 1, 1, 1), (9, 1, 1, 1)], "`µg` int, `μg` int, `a b` int, _column_0 int"
    )
    conditions = ["`µg` > 5", "`μg` > 5", "`a b` > 0 AND _column_0 > 5", "_COLUMN_0 > 5"]
    functions: dict[str, Any] = {f"n{at}": sp.count_if(one) for at, one in enumerate(conditions)}
    (found,) = sp.aggregate(rows, **functions).collect()
    assert list(found) == [2, 1, 1, 1]


@pytest.mark.parametrize(
    "score",
    ["id", "-id", "nanos", "cost", "cost * 2", "id - 1152921504606846976", "day", "x", "x * 0.1 - 1", "id / 2", "max(x, 3)", "x ** 2", "f", "f * 0.1"],
)  # fmt: skip
def test_top_k_ranks_by_the_values_that_spark_orders_by(spark: SparkSession, score: str):
    rows = spark.range(50).selectExpr(
        "id + 1152921504606846976 AS id", "1767225600123456788 + (id * 7) % 50 AS nanos", "date'2026-01-01' - CAST(id AS int) AS day",
        "CAST(id AS decimal(38, 0)) + 10000000000000000000000000BD AS cost", "id * 0.1D AS x", "CAST(id AS float) / 3 AS f",
    )  # fmt: skip
    sql = {"max(x, 3)": "greatest(x, 3)", "x ** 2": "power(x, 2)"}.get(score, score)
    fifth = rows.select(sf.expr(sql).alias("v")).orderBy(sf.desc("v")).limit(5).collect()[-1].v
    best = sp.top_k(rows, 5, score)
    assert [best.count(), best.where(sf.expr(sql) < sf.lit(fifth)).count()] == [5, 0]


@pytest.mark.parametrize("kind", ["double", "float", "decimal(5,1)"])
def test_a_row_that_lacks_a_part_of_a_score_has_none(spark: SparkSession, kind: str):
    """Whether workers compute it or Spark, whose least() and greatest() skip nulls."""
    lacking = None if "decimal" in kind else float("nan")
    drawn = spark.createDataFrame([(1, 1.0, None), (2, lacking, 5.0), (3, 2.0, 1.0)], "id int, x double, y double")
    rows = drawn.selectExpr("id", f"CAST(x AS {kind}) AS x", f"CAST(y AS {kind}) AS y")
    for score in ("min(x, y)", "max(x, y)", "max(y, x) - 1"):
        assert [row.id for row in sp.top_k(rows, 5, score, invalid="drop").collect()] == [3], score
