"""Table functions in SQL, with Spark, against the DataFrame API, whose answers test_batch.py compares with definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC as UTC_ZONE
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, TimestampType
from tests.parameters import slow_but
from tests.rows import NAN, UTC, tables, windows
from tests.runtime.named_answers import assert_same, bags

import skypane as sp
from skypane.windows import Windows

pytestmark = pytest.mark.core

START = datetime(2026, 3, 29, tzinfo=UTC_ZONE)  # of the day on which summer time begins
TYPES = "ts timestamp, local timestamp_ntz, city string, grade double, price double, rating int, cost decimal(10,2), day date, seen boolean, code binary, tags array<string>, place struct<x: int, name: string>, counts map<string, int>, span interval day to second"


def offers(n: int = 600, seed: int = 3) -> list[tuple[Any, ...]]:
    """Rows with nulls and NaN in groups, ties in criteria, and a value of each type."""
    random = Random(seed)
    return [
        (
            START + timedelta(minutes=random.randrange(240)),
            START.replace(hour=1, tzinfo=None) + timedelta(minutes=random.randrange(240)),
            random.choice(["Basel", "Bern", None]),
            random.choice([0.0, -0.0, 1.5, NAN, None]),
            float(random.randrange(40)),
            random.randrange(20),
            Decimal(random.randrange(900)) / 100,
            START.date() + timedelta(days=random.randrange(5)),
            random.choice([True, False, None]),
            random.choice([b"\x00", b"ab", None]),
            random.choice([["a", None], [], None]),
            random.choice([(1, "x"), None]),
            random.choice([{"a": 1}, {}, None]),
            random.choice([timedelta(hours=1, microseconds=5), None]),
        )
        for _ in range(n)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Iterator[DataFrame]:
    """The offers, as a DataFrame and as the view offers; the functions are registered."""
    sp.register(spark)
    frame = spark.createDataFrame(offers(), TYPES).repartition(3).cache()
    frame.createOrReplaceTempView("offers")
    yield frame
    spark.catalog.dropTempView("offers")
    frame.unpersist()


def answer(spark: SparkSession, call: str) -> DataFrame:
    return spark.sql(f"SELECT * FROM {call}")  # noqa: S608 - the calls of this file


PREFERENCE = "price MIN, rating MAX"
THREE = "price MIN, rating MAX, cost MIN"
FULL = (
    "coalesce(price, 0D) AS p",
    "coalesce(rating, 0) AS q",
    "coalesce(city, '') AS c",
    "coalesce(ts, timestamp'2026-03-29') AS t",
)
FULL_ROWS = f"SELECT {', '.join(FULL)} FROM offers"  # noqa: S608 - constants of this file
SAME: Mapping[str, tuple[str, Callable[[DataFrame], DataFrame]]] = {
    "skyline": (f"skypane_skyline(TABLE(offers), '{PREFERENCE}')", lambda r: sp.skyline(r, PREFERENCE)),
    "named": (f"skypane_skyline(preference => '{PREFERENCE}', table => TABLE(offers))", lambda r: sp.skyline(r, PREFERENCE)),
    "around": ("skypane_skyline(TABLE(offers), 'day AROUND \\'2026-03-30\\', price MIN')",
               lambda r: sp.skyline(r, "day AROUND '2026-03-30', price MIN")),
    "decimal, date, truth": ("skypane_skyline(TABLE(offers), 'cost MIN, day MAX, seen MAX', invalid => 'drop')",
                             lambda r: sp.skyline(r, "cost MIN, day MAX, seen MAX", invalid="drop")),
    "times": ("skypane_skyline(TABLE(offers), 'ts MAX, local MIN, span MIN', invalid => 'drop')",
              lambda r: sp.skyline(r, "ts MAX, local MIN, span MIN", invalid="drop")),
    "null groups": (f"skypane_skyline(TABLE(offers), '{PREFERENCE}', by => 'city')", lambda r: sp.skyline(r, PREFERENCE, by="city")),
    "NaN and -0.0 groups": (f"skypane_skyline(TABLE(offers), '{PREFERENCE}', array('grade', 'seen'))",
                            lambda r: sp.skyline(r, PREFERENCE, by=["grade", "seen"])),
    "binary and time groups": (f"skypane_skyline(TABLE(offers), '{PREFERENCE}, code DIFF', by => 'span')",
                               lambda r: sp.skyline(r, f"{PREFERENCE}, code DIFF", by="span")),
    "expressions": ("skypane_skyline(TABLE(offers), 'price * 2 + rating MIN, upper(city) DIFF', by => 'day + 1')",
                    lambda r: sp.skyline(r, "price * 2 + rating MIN, upper(city) DIFF", by="day + 1")),
    "top k": ("skypane_top_k(TABLE(offers), 7, '2 * rating - price')", lambda r: sp.top_k(r, 7, "2 * rating - price")),
    "a score in SQL": ("skypane_top_k(TABLE(offers), 5, 'rating / greatest(price, 1)')", lambda r: sp.top_k(r, 5, "rating / greatest(price, 1)")),
    "least k": ("skypane_top_k(TABLE(offers), 2, 'price', 'city', false)",
                lambda r: sp.top_k(r, 2, "price", by="city", largest=False)),
    "k-dominant": (f"skypane_k_dominant(TABLE(offers), 2, '{THREE}')", lambda r: sp.k_dominant(r, 2, THREE)),
    "k-dominant groups": (f"skypane_k_dominant(TABLE(offers), 2, '{THREE}', by => 'city')", lambda r: sp.k_dominant(r, 2, THREE, by="city")),
    "dominant on all": (f"skypane_k_dominant(TABLE(offers), 2, '{PREFERENCE}')", lambda r: sp.k_dominant(r, 2, PREFERENCE)),
    "top delta": (f"skypane_top_delta(TABLE(offers), 4, '{THREE}')", lambda r: sp.top_delta(r, 4, THREE)),
    "aggregate": ("skypane_aggregate(TABLE(offers), 'count(*) AS n, sum(price) AS total')",
                  lambda r: sp.aggregate(r, n=sp.count(), total=sp.sum("price"))),
    "aggregate groups": ("skypane_aggregate(TABLE(offers), 'count(grade) AS n, stddev(price), collect_set(rating) AS all', by => array('city', 'grade'))",
                         lambda r: sp.aggregate(r, by=["city", "grade"], n=sp.count("grade"), **dict[str, Any]({"stddev(price)": sp.stddev("price")}), all=sp.collect_set("rating"))),
    "aggregate of any name": ("skypane_aggregate(TABLE(offers), 'count(*) AS top, max(price) AS by, min(price) AS `a b`, max(day) AS window', by => 'city')",
                              lambda r: sp.aggregate(r, by="city", functions={"top": sp.count(), "by": sp.max("price"), "a b": sp.min("price"), "window": sp.max("day")})),
    "aggregate in order": ("skypane_aggregate(TABLE(offers), 'last(rating) AS it, max_by(day, price) AS day', by => 'seen', time => 'ts')",
                           lambda r: sp.aggregate(r, by="seen", time="ts", it=sp.last("rating"), day=sp.max_by("day", "price"))),
    "aggregate conditions": ("skypane_aggregate(TABLE(offers), 'count(*) FILTER (WHERE city LIKE \\'B%\\') AS b, sum(rating, where=price > 9) AS r', by => 'day', having => 'b > 30', top => 2, rank_by => 'r')",
                             lambda r: sp.aggregate(r, by="day", b=sp.count(where="city LIKE 'B%'"), r=sp.sum("rating", where="price > 9"), having="b > 30", top=2, rank_by="r")),
    "windows": (f"skypane_skyline(TABLE(offers), '{PREFERENCE}', time => 'ts', window => '1 hour')",
                lambda r: sp.skyline(r, PREFERENCE, time="ts", window="1 hour")),
    "sliding windows": (f"skypane_skyline(TABLE(offers), '{PREFERENCE}', time => 'ts', window => INTERVAL 1 HOUR, slide => '7 minutes', offset => '90 seconds')",
                        lambda r: sp.skyline(r, PREFERENCE, time="ts", window=Windows.of("1 hour", "7 minutes", "90 seconds"))),
    "windows of local time": ("skypane_top_k(TABLE(offers), 2, 'price', time => 'local', window => '1 hour')",
                              lambda r: sp.top_k(r, 2, "price", time="local", window="1 hour")),
    "windows of groups": ("skypane_aggregate(TABLE(offers), 'count(*) AS n, max(local) AS newest', by => 'city', time => 'ts', window => '1 hour', slide => '10 minutes')",
                          lambda r: sp.aggregate(r, by="city", time="ts", window="1 hour", slide="10 minutes", n=sp.count(), newest=sp.max("local"))),
    "largest of each window": ("skypane_aggregate(TABLE(offers), 'count(*) AS n', by => 'rating', time => 'ts', window => '1 hour', top => 2, rank_by => 'n')",
                               lambda r: sp.aggregate(r, by="rating", time="ts", window="1 hour", top=2, rank_by="n", n=sp.count())),
    "a query as the table": ("skypane_skyline(TABLE(SELECT *, price * rating AS worth FROM offers WHERE city IS NOT NULL), 'worth MIN')",
                             lambda r: sp.skyline(r.where("city IS NOT NULL").selectExpr("*", "price * rating AS worth"), "worth MIN")),
    "names of any letters": ("skypane_skyline(TABLE(SELECT price AS `unit price`, rating AS `a-b`, city AS `the 'city` FROM offers), '`unit price` MIN, `a-b` MAX', by => '`the \\'city`')",
                             lambda r: sp.skyline(r.selectExpr("price AS `unit price`", "rating AS `a-b`", "city AS `the 'city`"), "`unit price` MIN, `a-b` MAX", by="the 'city")),
    "columns without nulls": (f"skypane_skyline(TABLE({FULL_ROWS}), 'p MIN, q MAX')", lambda r: sp.skyline(r.selectExpr(*FULL), "p MIN, q MAX")),
    "windows of columns without nulls": (f"skypane_top_k(TABLE({FULL_ROWS}), 2, 'p', by => 'c', time => 't', window => '1 hour')",
                                         lambda r: sp.top_k(r.selectExpr(*FULL), 2, "p", by="c", time="t", window="1 hour")),
    "no rows": ("skypane_skyline(TABLE(SELECT * FROM offers WHERE price < 0), 'price MIN, rating MAX')", lambda r: sp.skyline(r.where("price < 0"), PREFERENCE)),
    "no rows to count": ("skypane_aggregate(TABLE(SELECT * FROM offers WHERE price < 0), 'count(*) AS n')", lambda r: sp.aggregate(r.where("price < 0"), n=sp.count())),
}  # fmt: skip


def columns_of(frame: DataFrame) -> list[tuple[str, DataType]]:
    return [(field.name, field.dataType) for field in frame.schema]


OFTEN = (
    "decimal, date, truth", "null groups", "expressions", "least k", "k-dominant groups", "top delta", "aggregate conditions",
    "windows of groups", "no rows",
)  # fmt: skip
"""One of each kind; of the others each second one is slow."""


@pytest.mark.parametrize(
    "cases",
    [
        OFTEN,
        pytest.param([one for one in SAME if one not in OFTEN][::2], marks=pytest.mark.slow),
        pytest.param([one for one in SAME if one not in OFTEN][1::2], marks=pytest.mark.night),
    ],
    ids=["of each kind", "others", "by night"],
)
def test_a_function_answers_as_the_call_in_python(cases: Sequence[str], spark: SparkSession, rows: DataFrame):
    pairs = {case: (answer(spark, SAME[case][0]), SAME[case][1](rows)) for case in cases}
    assert [case for case, (found, wanted) in pairs.items() if columns_of(found) != columns_of(wanted)] == []
    without = {case for case, wanted in assert_same(pairs).items() if not wanted}
    assert without <= {case for case in SAME if case.startswith(("no rows", "k-dominant"))}


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("examples", slow_but([4], [4, 12, 50], [12]))
def test_random_rows_are_answered_as_in_python(examples: int, spark: SparkSession):
    @settings(max_examples=examples)
    @given(table=tables(clean=False), shape=st.one_of(st.none(), windows()))
    def answered(table: pa.Table, shape: Windows | None) -> None:
        frame = spark.createDataFrame(table).repartition(2)
        frame.createOrReplaceTempView("drawn")
        named = ""
        given_: dict[str, Any] = {}
        if shape is not None:
            length, slide, offset = (f"{number} us" for number in (shape.length, shape.slide, shape.offset))
            named = f", time => 'time', window => '{length}', slide => '{slide}', offset => '{offset}'"
            given_ = {"time": "time", "window": shape}
        pairs = {}
        for by in (None, "y"):
            grouped = "" if by is None else f", by => '{by}'"
            found = answer(spark, f"skypane_skyline(TABLE(drawn), 'x MIN, y MAX', invalid => 'drop'{grouped}{named})")
            pairs[by] = found, sp.skyline(frame, "x MIN, y MAX", by=by or (), invalid="drop", **given_)
        found = answer(
            spark, f"skypane_aggregate(TABLE(drawn), 'count(*) AS n, sum(x) AS s', by => 'y', invalid => 'drop'{named})"
        )
        pairs["sums"] = found, sp.aggregate(frame, by="y", n=sp.count(), s=sp.sum("x"), invalid="drop", **given_)
        assert_same(pairs)

    answered()


HOURS = "time => 'ts', window => '1 hour', slide => '9 minutes'"
REDUCED: Mapping[str, tuple[str, str]] = {
    "skyline": (f"skypane_skyline(TABLE(offers), '{PREFERENCE}', local => true)", f"skypane_skyline(TABLE(kept), '{PREFERENCE}')"),
    "k-dominant": (f"skypane_skyline(TABLE(offers), '{THREE}', local => true)", f"skypane_k_dominant(TABLE(kept), 2, '{THREE}')"),
    "top delta": (f"skypane_skyline(TABLE(offers), '{THREE}', local => true)", f"skypane_top_delta(TABLE(kept), 4, '{THREE}')"),
    "top k": ("skypane_top_k(TABLE(offers), 3, 'price', local => true)", "skypane_top_k(TABLE(kept), 3, 'price')"),
    "windows": (f"skypane_skyline(TABLE(offers), '{PREFERENCE}', {HOURS}, local => true)", f"skypane_skyline(TABLE(kept), '{PREFERENCE}', {HOURS})"),
}  # fmt: skip


def test_rows_that_are_reduced_where_they_are_have_the_same_answer(spark: SparkSession, rows: DataFrame):
    pairs, kept = {}, {}
    for case, (inner, outer) in REDUCED.items():
        kept[case] = answer(spark, inner)
        kept[case].createOrReplaceTempView("kept")  # read when the next call is planned
        pairs[case] = answer(spark, outer), answer(spark, outer.replace("kept", "offers"))
    spark.catalog.dropTempView("kept")
    assert_same(pairs)
    counts = {case: found.total() for case, found in bags(kept).items()}
    assert not [case for case, count in counts.items() if not 0 < count < len(offers())]
    assert not [case for case, frame in kept.items() if frame.columns != rows.columns]


def test_answers_are_tables_of_sql(spark: SparkSession, rows: DataFrame):
    call = f"skypane_skyline(TABLE(offers), '{PREFERENCE}', by => 'city')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW best AS SELECT * FROM {call}")  # noqa: S608 - as above
    cities = "(SELECT DISTINCT city AS c FROM offers)"
    joined = spark.sql(f"SELECT city, count(*) AS n FROM best JOIN {cities} ON city = c GROUP BY city")  # noqa: S608
    wanted = sp.skyline(rows, PREFERENCE, by="city").where("city IS NOT NULL").groupBy("city").count()
    assert {tuple(row) for row in joined.collect()} == {tuple(row) for row in wanted.collect()}
    spark.catalog.dropTempView("best")


@pytest.mark.slow
def test_the_zone_of_the_session_does_not_change_the_answer(spark: SparkSession, rows: DataFrame):
    cases = {
        case: SAME[case] for case in ("windows", "sliding windows", "times", "aggregate in order", "no rows to count")
    }

    def found(frames: dict[str, DataFrame]) -> dict[str, Counter[str]]:
        return bags({case: frame.select(as_text(frame)) for case, frame in frames.items()})

    in_utc = found({case: in_python(rows) for case, (_, in_python) in cases.items()})
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert found({case: answer(spark, call) for case, (call, _) in cases.items()}) == in_utc
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def as_text(frame: DataFrame) -> list[Column]:
    """The columns, with instants as their microseconds, which are the same in every zone."""
    instants = {field.name for field in frame.schema if isinstance(field.dataType, TimestampType)}
    return [sf.unix_micros(name).alias(name) if name in instants else sf.col(name) for name in frame.columns]


@pytest.mark.parametrize("divided", ["PARTITION BY city", "WITH SINGLE PARTITION", "PARTITION BY city ORDER BY price"])
@pytest.mark.usefixtures("rows")
def test_a_table_that_the_call_divides_is_refused(spark: SparkSession, divided: str):
    with pytest.raises(AnalysisException, match="skypane_skyline"):
        answer(spark, f"skypane_skyline(TABLE(offers) {divided}, '{PREFERENCE}')")


@pytest.mark.parametrize("call", slow_but(["by => '(city town)'"], ["by => 'city town'", "by => '(city town)'"]))
@pytest.mark.usefixtures("rows")
def test_an_expression_with_an_alias_without_as_is_refused(spark: SparkSession, call: str):
    for more in ("", ", invalid => 'drop'", ", local => true"):
        with pytest.raises(AnalysisException, match=r"(?i)town|pars"):
            answer(spark, f"skypane_skyline(TABLE(offers), '{PREFERENCE}', {call}{more})")


def test_the_type_of_an_expression_is_the_same_for_all_rows(spark: SparkSession):
    """Spark 4.0 sends 10,000 rows at a time: nulls alone, then decimals with more and more digits."""
    sp.register(spark)
    many = spark.range(0, 25_000, 1, 1).selectExpr("id", "CAST(25000 - id AS DECIMAL(12, 2)) / 100 AS cost")
    many.createOrReplaceTempView("many")
    late, cheap = "if(id < 12000, NULL, cost) MIN", "cost + 1 MIN, id % 3 DIFF"
    by = "if(id < 12000, NULL, CAST(id % 2 AS STRING))"
    found = answer(spark, f"skypane_skyline(TABLE(many), '{late}', invalid => 'drop')")
    grouped = answer(spark, f"skypane_skyline(TABLE(many), '{cheap}', by => '{by}', local => true)")
    assert_same({
        "late": (found, sp.skyline(many, late, invalid="drop")), "cheap": (grouped, sp.skyline(many, cheap, by=by)),
    })  # fmt: skip
    spark.catalog.dropTempView("many")


def test_a_function_of_the_same_name_is_replaced(spark: SparkSession, rows: DataFrame):
    other: Any = sf.udtf(_One, returnType="x int")
    spark.udtf.register("skypane_skyline", other)
    assert answer(spark, "skypane_skyline()").columns == ["x"]
    sp.register(spark)
    assert answer(spark, SAME["skyline"][0]).columns == rows.columns


class _One:
    def eval(self) -> Iterator[tuple[int]]:
        yield (1,)


@pytest.mark.usefixtures("rows")
def test_the_names_of_the_functions_are_returned(spark: SparkSession):
    names = ("skypane_aggregate", "skypane_k_dominant", "skypane_top_delta", "skypane_skyline", "skypane_top_k")
    assert sp.register(spark) == names
    assert set(names) <= {one.name for one in spark.catalog.listFunctions()}


WRONG = {
    "skypane_skyline(TABLE(offers), 'prise MIN')": "skypane_skyline: column 'prise' does not exist; did you mean 'price'?",
    "skypane_skyline(TABLE(offers), 'price MIN', bye => 'city')": "skypane_skyline: there is no argument 'bye'; did you mean 'by'?",
    "skypane_top_k(TABLE(offers), 'three', 'price')": "skypane_top_k: k must be a whole number, got 'three'",
    "skypane_aggregate(TABLE(offers), 'summ(price)')": "skypane_aggregate: functions: unknown aggregate function 'summ'",
    "skypane_skyline('offers', 'price MIN')": "skypane_skyline: the first argument must be a table",
}


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("call", slow_but([*WRONG][:1], WRONG))
def test_a_wrong_call_is_refused_when_it_is_planned_in_one_line(spark: SparkSession, call: str):
    with pytest.raises(AnalysisException) as refused:
        answer(spark, call)
    (line,) = [line for line in str(refused.value).splitlines() if WRONG[call] in line]
    assert "ConfigError" in line
    assert "Traceback" not in str(refused.value)


@pytest.mark.usefixtures("rows")
def test_a_missing_column_in_an_expression_is_spark_s_error(spark: SparkSession):
    with pytest.raises(AnalysisException, match="prise"):
        answer(spark, "skypane_skyline(TABLE(offers), 'prise * 2 MIN')").collect()


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(("table", "criterion", "complaint"), [
    ("offers", "grade MIN", "cannot rank rows whose grade is null"),
    ("offers", "1 - grade MIN", "cannot rank rows whose 1 - grade is null"),
    ("offers", "seen MAX", "cannot rank rows whose seen is null"),
    ("SELECT * FROM offers WHERE grade IS NOT NULL", "1 - grade MIN", "skypane_skyline: cannot rank .* rows with NaN 1 - grade"),
    ("SELECT * FROM offers WHERE city IS NOT NULL", "upper(city) MIN", r"skypane_skyline: column 'upper\(city\)' of type string is text"),
])  # fmt: skip
def test_a_criterion_that_cannot_be_ranked_fails_the_query_with_its_name(
    spark: SparkSession, table: str, criterion: str, complaint: str
):
    with pytest.raises(PySparkException, match=complaint):
        answer(spark, f"skypane_skyline(TABLE({table}), '{criterion}')").collect()


@pytest.mark.usefixtures("rows")
def test_times_before_and_after_the_years_of_python_are_refused_or_dropped(spark: SparkSession):
    times = [0, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]
    frame = spark.createDataFrame(pa.table({"time": pa.array(times, UTC), "x": [float(one) for one in range(5)]}))
    frame.createOrReplaceTempView("absurd")
    call = "skypane_skyline(TABLE(absurd), 'x MIN', time => 'time', window => '1 hour', offset => '-7 seconds', invalid => "
    assert answer(spark, call + "'drop')").select("x").collect() == [(0.0,)]
    with pytest.raises(PySparkException, match="absurd time"):
        answer(spark, call + "'error')").select("x").collect()
