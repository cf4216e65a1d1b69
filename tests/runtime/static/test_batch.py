from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests import oracles
from tests.rows import NAN, SCHEMA, SKYLINE, Bag, Counts, multiset, table
from tests.runtime.named_answers import assert_same, bags, differing

import skypane as sp
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark import batch
from skypane.types import ConfigError
from skypane.windows import Windows

PREFERENCE = "x MIN, y MAX"
HOURLY: dict[str, Any] = {"time": "time", "window": "1 hour"}
SLIDING: dict[str, Any] = {**HOURLY, "slide": "20 minutes"}
TEN_MINUTES: dict[str, Any] = {"time": "time", "window": "10 minutes"}
MINUTE = 60_000_000


def sample(n: int = 400, seed: int = 0, labels: int = 3) -> pa.Table:
    """Rows of two hours around the epoch, with ties, on minutes' boundaries now and then."""
    random = Random(seed)
    times = [random.choice([random.randrange(-60 * MINUTE, 60 * MINUTE), random.randrange(-60, 60) * MINUTE])
             for _ in range(n)]  # fmt: skip
    grades = [[float(random.randrange(12)) for _ in range(n)] for _ in "xy"]
    rows = table(times, *grades)
    return rows.set_column(3, "label", pa.array([random.choice("abcdefgh"[:labels]) for _ in range(n)]))


ROWS = sample()


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    """Rows in three partitions, of which Spark's plan shows nothing: few rows in memory would be answered in one task."""
    return spark.createDataFrame(ROWS).repartition(3).localCheckpoint()


def points(rows: pa.Table) -> Any:
    return sp.parse(PREFERENCE).orient(rows)


def taken(rows: pa.Table, indices: list[int]) -> pa.Table:
    return rows.take(pa.array(indices, pa.int64()))


def per_window(rows: pa.Table, w: Windows, answer: Callable[[pa.Table], pa.Table]) -> Counter[str]:
    """The naive answer of every window that holds a row, stamped."""
    times = rows.column("time").cast(pa.int64()).to_pylist()
    found: Counter[str] = Counter()
    for k in {k for time in times for k in w.windows_of(w.pane_at(time))}:
        start, end = w.bounds(k)
        held = taken(rows, [i for i, time in enumerate(times) if start <= time < end])
        stamps = dict(zip(("window_start", "window_end"), map(moment, (start, end)), strict=True))
        found += multiset([stamps | row for row in answer(held).to_pylist()])
    return found


def moment(micros: int) -> datetime:
    """Return a time with the class of zone that Arrow gives, pytz's in pyarrow 21, zoneinfo's in 26."""
    found: datetime = pa.scalar(micros, pa.timestamp("us", "UTC")).as_py()
    return found


def best_two(rows: pa.Table) -> pa.Table:
    def by_content(row: dict[str, Any]) -> tuple[Any, ...]:
        return (-(row["y"] - row["x"]), *row.values())

    kept = sorted(rows.to_pylist(), key=by_content)[:2]
    return pa.Table.from_pylist(kept, SCHEMA)


def by_label(rows: pa.Table) -> pa.Table:
    labels = rows.column("label").to_pylist()
    codes = [sorted(set(labels)).index(label) for label in labels]
    return taken(rows, oracles.skyline_indices_by_group(points(rows), codes))


CALLS: dict[str, Callable[..., DataFrame]] = {
    "skyline": lambda df, **options: sp.skyline(df, PREFERENCE, **options),
    "skyline by label": lambda df, **options: sp.skyline(df, PREFERENCE, by="label", **options),
    "top_k": lambda df, **options: sp.top_k(df, 2, "y - x", **options),
    "k_dominant": lambda df, **options: sp.k_dominant(df, 1, PREFERENCE, **options),
    "top_delta": lambda df, **options: sp.top_delta(df, 3, PREFERENCE, **options),
}
NAIVE: dict[str, Callable[[pa.Table], pa.Table]] = {
    "skyline": lambda rows: taken(rows, oracles.skyline_indices(points(rows))),
    "skyline by label": by_label,
    "top_k": best_two,
    "k_dominant": lambda rows: taken(rows, oracles.k_dominant_indices(points(rows), 1)),
    "top_delta": lambda rows: taken(rows, oracles.top_delta_indices(points(rows), 3)[0]),
}
"""The rows that each call must give for some rows, by the definition."""


def test_all_rows_are_answered_as_defined(df: DataFrame):
    found = bags({name: call(df) for name, call in CALLS.items()})
    assert differing(found, {name: multiset(naive(ROWS)) for name, naive in NAIVE.items()}) == {}


@pytest.mark.core
def test_every_window_is_answered_as_defined(df: DataFrame):
    """50 minutes every 20, so panes of 10, none of which starts a full hour."""
    cases, w = ("skyline by label", "top_k", "top_delta"), Windows.of("50 minutes", "20 minutes", "-7 minutes")
    found = bags({name: CALLS[name](df, time="time", window=w) for name in cases})
    assert differing(found, {name: per_window(ROWS, w, NAIVE[name]) for name in cases}) == {}


def test_windows_are_those_of_sparks_own_window(df: DataFrame):
    """Which rows are in which window, and with which bounds, for a shape whose runs go over several tasks."""
    answered = sp.ask(df, Bag(), time="time", window=sp.Windows.of("5 minutes", "2 minutes", "30 seconds"))
    spans = df.select(sf.window("time", "5 minutes", "2 minutes", "30 seconds").alias("w"), "*")
    bounds = sf.col("w.start").alias("window_start"), sf.col("w.end").alias("window_end")
    counts = df.groupBy(sf.window("time", "1 hour").alias("w"), "label").agg(sf.count("*").alias("n"))
    flat = counts.select(*bounds, "label", "n")
    assert_same({
        "bounds": (answered, spans.select(*bounds, *df.columns)),
        "of a query of the user": (sp.ask(df, Counts("label"), **HOURLY), flat),
        "of all": (sp.ask(df, Counts("label")), df.groupBy("label").agg(sf.count("*").alias("n"))),
    })  # fmt: skip


def test_a_preference_in_place_of_a_query_is_its_skyline(df: DataFrame):
    preferences: tuple[str | sp.Preference, ...] = (PREFERENCE, sp.low("x") * sp.high("y"), "label DIFF, x MIN, y MAX")
    assert_same({
        (str(one), *options): (sp.ask(df, one, **options), sp.skyline(df, one, **options))
        for one in preferences
        for options in ({}, SLIDING)
    })  # fmt: skip


@pytest.mark.parametrize("sizes", [[], [0], [3] * 100, [0, 70, 1, 0, 5], [200, 1]])
def test_answers_of_windows_with_few_rows_are_sent_in_few_batches(sizes: list[int], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batch, "BATCH_ROWS", 50)
    rows = pa.table({"n": list(range(sum(sizes)))})
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    answers = [rows.slice(begin, size).combine_chunks() for begin, size in zip(starts, sizes, strict=True)]
    sent = [*batch._Gathered(iter)([one for table in answers for one in table.to_batches()])]
    assert [value for one in sent for value in one.column("n").to_pylist()] == rows["n"].to_pylist()
    assert all(one.num_rows >= 50 for one in sent[:-1])
    assert len(sent) <= 1 + sum(sizes) // 50


ASKED: dict[str, Callable[[Any], DataFrame]] = {
    "skyline": lambda rows: sp.skyline(rows, PREFERENCE, by="label"),
    "top_k": lambda rows: sp.top_k(rows, 3, "x - y", **HOURLY),
    "k_dominant": lambda rows: sp.k_dominant(rows, 1, PREFERENCE),
    "top_delta": lambda rows: sp.top_delta(rows, 2, PREFERENCE),
    "aggregate": lambda rows: sp.aggregate(rows, by="label", n=sp.count("*"), middle=sp.median("x")),
    "ask": lambda rows: sp.ask(rows, Counts("label"), **HOURLY),
    "skyline_history": lambda rows: sp.skyline_history(rows, PREFERENCE, **TEN_MINUTES),
}


DROPPING: dict[str, Any] = {**SLIDING, "invalid": "drop"}
DROPPED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "skyline": lambda rows: sp.skyline(rows, PREFERENCE, by="label", invalid="drop"),
    "skyline of windows": lambda rows: sp.skyline(rows, PREFERENCE, by="label", **DROPPING),
    "top_k of windows": lambda rows: sp.top_k(rows, 3, "x - y", **DROPPING),
    "top_delta of windows": lambda rows: sp.top_delta(rows, 2, PREFERENCE, **DROPPING),
    "aggregate of windows": lambda rows: sp.aggregate(rows, by="label", n=sp.count("*"), m=sp.max("x"), **DROPPING),
    "skyline_history": lambda rows: sp.skyline_history(rows, PREFERENCE, **TEN_MINUTES, invalid="drop"),
}


def test_rows_that_a_condition_has_left_without_nulls_are_answered(df: DataFrame):
    """Spark sends their columns as ones that cannot be null, other than the DataFrame says."""
    whole = df.where("x IS NOT NULL AND y IS NOT NULL AND label IS NOT NULL AND time IS NOT NULL")
    known = whole.repartition(2, "label")
    unknown = known.localCheckpoint()
    assert all(assert_same({name: (ask(known), ask(unknown)) for name, ask in DROPPED.items()}).values())


@pytest.mark.slow
def test_a_pandas_on_spark_frame_is_queried_without_its_index(df: DataFrame):
    frame = df.withColumn("place", sf.monotonically_increasing_id()).pandas_api(index_col="place")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = {name: ask(frame) for name, ask in ASKED.items()}
    assert_same({name: (answers[name], ask(df)) for name, ask in ASKED.items()})


def test_batch_and_local_agree_where_nothing_is_late(df: DataFrame):
    plan = Plan(SKYLINE, Windows.of("30 minutes", "10 minutes"), "time", sp.Watermark("0 us", max_ahead=None))
    closing = table([10**12])
    answers = [answer.rows for answer in local.answers(plan, [ROWS, closing])]
    answered = sp.skyline(df, PREFERENCE, time="time", window="30 minutes", slide="10 minutes")
    assert multiset(answered.toArrow()) == multiset(pa.concat_tables(answers))


PREFERENCES: list[tuple[sp.Preference, Callable[[dict[str, Any], dict[str, Any]], bool]]] = [
    (sp.low("x") & sp.high("y"), lambda t, u: t["x"] < u["x"] or (t["x"] == u["x"] and t["y"] > u["y"])),
    (
        sp.around("x", 5) * sp.low("y"),
        lambda t, u: (
            abs(t["x"] - 5) <= abs(u["x"] - 5)
            and t["y"] <= u["y"]
            and (abs(t["x"] - 5) < abs(u["x"] - 5) or t["y"] < u["y"])
        ),
    ),
    (sp.diff("label") * sp.low("x"), lambda t, u: t["label"] == u["label"] and t["x"] < u["x"]),
]


def test_any_preference_is_answered(df: DataFrame):
    rows = ROWS.to_pylist()
    found = bags({str(written): sp.skyline(df, written) for written, _ in PREFERENCES})
    wanted = {str(one): [u for u in rows if not any(better(t, u) for t in rows)] for one, better in PREFERENCES}
    assert differing(found, {name: multiset(best) for name, best in wanted.items()}) == {}


def test_columns_of_spark_are_as_good_as_names(df: DataFrame):
    named = sp.top_k(df, 2, "y - 0.5 * x", by="label", **HOURLY)
    meant = sp.top_k(df, 2, df.y - 0.5 * df.x, by=df.label, time=df.time, window="1 hour")
    assert_same({"of Spark": (meant, named)})
    assert sp.low(df.x) * sp.high(df["y"]) == sp.parse(PREFERENCE)


def test_columns_that_a_query_does_not_read_stay_in_java(df: DataFrame):
    """A column that would fail when it is computed is not computed."""
    wide = df.withColumn("costly", sf.raise_error(sf.lit("no query needs this")).cast("double"))
    assert_same({
        name: (sp.ask(wide, Counts("label"), **options), sp.ask(df, Counts("label"), **options))
        for name, options in {"all": {}, "windows": HOURLY}.items()
    })  # fmt: skip


def test_rows_are_counted_where_no_column_is_read(df: DataFrame):
    wanted = multiset([{"n": ROWS.num_rows, "again": ROWS.num_rows}])
    asked = {
        name: sp.aggregate(rows, n=sp.count(), again=sp.count())
        for name, rows in {"some": df, "none": df.select()}.items()
    }
    assert bags(asked) == {"some": wanted, "none": wanted}


def test_it_fits_transform(df: DataFrame):
    chained = df.transform(sp.skyline, PREFERENCE, by=["label"]).filter("label = 'a'").select("x", "y")
    expected = [{"x": row["x"], "y": row["y"]} for row in by_label(ROWS).to_pylist() if row["label"] == "a"]
    assert multiset(chained.toArrow()) == multiset(expected)


def test_partitions_even_empty_ones_make_no_difference(spark: SparkSession):
    few, w = ROWS.slice(0, 5), Windows.of("20 minutes", "10 minutes")
    rows, naive = spark.createDataFrame(few), NAIVE["skyline"]
    wanted = {"all": multiset(naive(few)), "windows": per_window(few, w, naive)}
    options: dict[str, dict[str, Any]] = {"all": {}, "windows": {"time": "time", "window": w}}
    found = bags({
        (partitions, name): sp.skyline(rows.repartition(partitions), PREFERENCE, **options[name])
        for partitions in (1, 9)
        for name in wanted
    })  # fmt: skip
    assert differing(found, {case: wanted[case[1]] for case in found}) == {}


@pytest.mark.parametrize("options", [{}, {"time": "time", "window": "20 minutes"}])
def test_no_rows_give_no_rows(df: DataFrame, options: dict[str, Any]):
    answered = sp.skyline(df.limit(0), PREFERENCE, **options)
    assert answered.toArrow().num_rows == 0
    assert answered.columns == [*(["window_start", "window_end"] if options else []), *df.columns]


@pytest.mark.core
def test_columns_of_every_type_come_through_as_they_were(spark: SparkSession):
    """Away from UTC, where a time without zone taken for one with it would be moved."""
    noon = datetime(2024, 3, 10, 12)  # noqa: DTZ001 - a time without zone is meant
    ddl = """
        x int, text string, flag boolean, tiny tinyint, money decimal(20, 4), day date, at timestamp,
        local timestamp_ntz, raw binary, nothing void, lasted interval day to second,
        list array<struct<a: int, at: timestamp_ntz>>, record struct<name: string, local: timestamp_ntz>,
        pairs map<string, double>, time timestamp_ntz
    """
    values = (
        1, "süß", True, 7, Decimal("12345678901234.5678"), date(2024, 2, 29), noon, noon, b"\x00\xff", None,
        timedelta(days=1, seconds=2), [(1, noon), (2, None)], ("n", noon), {"a": 0.5, "b": None}, noon,
    )  # fmt: skip
    worse = (2, *values[1:])
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = spark.createDataFrame([values, worse, (1, *[None] * 13, noon)], ddl).repartition(2)
        best = sp.skyline(rows, "x MIN")
        windowed = sp.skyline(rows, "x MIN", time="time", window="1 hour")
        expected = rows.filter("x = 1").collect()
        assert best.schema == rows.schema
        assert sorted(best.collect(), key=repr) == sorted(expected, key=repr)
        assert dict(windowed.dtypes)["window_start"] == "timestamp_ntz", "stamps are of the kind of the time column"
        stamped = windowed.collect()
        assert sorted((row[2:] for row in stamped), key=repr) == sorted(map(tuple, expected), key=repr)
        assert {(row.window_start, row.window_end) for row in stamped} == {(noon, noon + timedelta(hours=1))}
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))


def test_absurd_times_are_left_out_with_the_others(spark: SparkSession):
    """Microseconds at both ends of 64 bits, which arithmetic would wrap around."""
    limits = 2**63 - 1
    rows = spark.createDataFrame([(-limits - 1, 1.0), (5, 2.0), (limits, 0.0), (None, 0.0)], "t long, x double")
    timed = rows.select("x", sf.timestamp_micros("t").alias("t"))
    answered = sp.skyline(timed, "x MIN", time="t", window=sp.Windows.of("1 hour", offset="7 minutes"), invalid="drop")
    assert [row.x for row in answered.collect()] == [2.0]


BAD = table([1, None, 3, 4, 5], [1.0, 0.0, NAN, None, 2.0])


@pytest.mark.parametrize(("options", "rows", "lack"), [
    ({}, [2], "x is null or NaN"),
    ({}, [3], "x is null or NaN"),
    (HOURLY, [1], "time is null"),
    (HOURLY, [0, 2], "x is null or NaN"),
])  # fmt: skip
def test_rows_that_cannot_be_ranked_fail_the_query_with_what_they_lack(
    spark: SparkSession, options: dict[str, Any], rows: list[int], lack: str
):
    """Whatever the partition: in one line, with no trace of a Python worker."""
    answered = sp.skyline(spark.createDataFrame(BAD.take(pa.array(rows))).coalesce(1), PREFERENCE, **options)
    with pytest.raises(SparkRuntimeException) as failed:
        answered.collect()
    text = str(failed.value)
    assert f"cannot rank rows whose {lack}: clean them first, or drop them with invalid='drop'" in text
    assert len(text.splitlines()) < 4


def test_rows_that_a_later_condition_of_the_user_took_away_fail_nothing(spark: SparkSession):
    """A check that Spark could move below a join or a filter would see rows outside of the query."""
    rows = spark.createDataFrame(BAD)
    known = spark.createDataFrame([("r0",), ("r4",)], "label string")
    assert [row.label for row in sp.skyline(rows.join(known, "label"), "x MIN").collect()] == ["r0"]
    assert [row.label for row in sp.skyline(rows.where("x > 0 AND x < 5"), "x MIN").where("y > 0").collect()] == ["r0"]


@pytest.mark.parametrize(("options", "best"), [({}, ["r1"]), (HOURLY, ["r0"])])
def test_rows_that_cannot_be_ranked_can_be_left_out(spark: SparkSession, options: dict[str, Any], best: list[str]):
    """Without windows the row without a time is as good as any."""
    answered = sp.skyline(spark.createDataFrame(BAD), PREFERENCE, invalid="drop", **options)
    assert [row.label for row in answered.collect()] == best


@pytest.mark.parametrize(("call", "message"), [
    (lambda df: sp.skyline(df, "z MIN"), "'z'"),
    (lambda df: sp.skyline(df, PREFERENCE, by="city"), "'city'"),
    (lambda df: sp.top_k(df, 0, "x"), "k >= 1, got k=0"),
    (lambda df: sp.top_k(df, 1, "x +"), "x +"),
    (lambda df: sp.k_dominant(df, 3, PREFERENCE), "1 <= k <= 2"),
    (lambda df: sp.top_delta(df, -1, PREFERENCE), "delta >= 0"),
    (lambda df: sp.skyline(df, PREFERENCE, window="1 hour"), "time= is needed"),
    (lambda df: sp.skyline(df, PREFERENCE, time="time"), "window= is needed"),
    (lambda df: sp.skyline(df, PREFERENCE, time="x", window="1 hour"), "time column 'x' is of type double"),
    (lambda df: sp.skyline(df, PREFERENCE, time="when", window="1 hour"), "unknown column 'when'"),
    (lambda df: sp.skyline(df, PREFERENCE, time="time", window="1 hour", slide="2 hours"), "0 < slide <= length"),
    (lambda df: sp.skyline(df, PREFERENCE, time="time", window="1 month"), "unknown unit 'month'"),
    (lambda df: sp.skyline(df.withColumnRenamed("label", "window_start"), PREFERENCE, time="time", window="1 h"),
     "rename window_start"),
    (lambda df: sp.skyline(df.withColumnRenamed("label", "la.bel"), PREFERENCE), "column 'la.bel' has a dot"),
    (lambda df: sp.skyline(df.withColumnRenamed("label", "x"), PREFERENCE), "there are 2 columns 'x'"),
    (lambda df: sp.skyline(df, PREFERENCE, invalid="ignore"),  # type: ignore[arg-type]
     "invalid must be 'error' or 'drop', got 'ignore'"),
    (lambda df: sp.skyline(df, PREFERENCE, slide="1 hour"), "time= and window= are needed here"),
    (lambda df: sp.skyline(df, PREFERENCE, time="time", window=3600),  # type: ignore[arg-type]
     r"window must be a text .* got 3600, .* '3600 seconds' or timedelta\(seconds=3600\)"),
    (lambda df: sp.skyline(df.toPandas(), PREFERENCE),
     r"must be a Spark DataFrame, got a pandas.DataFrame: .* spark.createDataFrame\(rows\)"),
    (lambda df: sp.skyline(df.toArrow(), PREFERENCE), r"got a pyarrow.Table: .* spark.createDataFrame\(rows\)"),
    (lambda df: sp.ask(df, sp.Skyline),  # type: ignore[arg-type]
     "got the class Skyline; create an instance"),
    (lambda df: sp.ask(df, 3),  # type: ignore[arg-type]
     "need a query .* got int, which has no required, reads, validate"),
    (lambda df: sp.ask(df, "x"), "preference 'x': expected MIN, MAX, DIFF or AROUND after column 'x'"),
    (lambda df: sp.skyline(df, "label MIN"), "column 'label' of type string is text"),
    (lambda df: sp.stream(df, sp.Skyline(PREFERENCE)), "this DataFrame is static: read it with spark.readStream"),
])  # fmt: skip
def test_an_invalid_query_is_refused_at_the_call(df: DataFrame, call: Callable[[DataFrame], Any], message: str):
    with pytest.raises(ConfigError, match=message):
        call(df)
