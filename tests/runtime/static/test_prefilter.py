"""Static queries whose rows Spark filters by points of a sample: which rows cross, what is answered, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException, SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.operators.dropping import drops
from tests.parameters import slow_but
from tests.preference.strategies import VALUES
from tests.rows import NAN, multiset
from tests.runtime.named_answers import differing, tables

import skypane as sp
from skypane.control.static_way import FEW
from skypane.operators.witnessed_points import Prefilter
from skypane.runtime.spark import batch
from skypane.runtime.spark.prefiltered_rows import prefiltered, rules_for
from skypane.runtime.spark.rows_at_rest import rows_at_rest
from skypane.runtime.spark.spark_schema import arrow_schema
from skypane.runtime.table_batching import decoded

TYPES = {
    **{name: VALUES[name] for name in ("f", "g", "i", "huge", "d", "s", "b", "day", "t")},
    "wait": (pa.duration("us"), [timedelta(0), timedelta(days=200), timedelta(days=200, microseconds=1)]),
    "cents": (pa.decimal128(5, 2), [Decimal("0.01"), Decimal("0.10"), Decimal("9.99")]),
}
QUERIES: dict[str, sp.Query] = {
    "fractions with infinities and -0.0": sp.Skyline("f MIN, g MAX"),
    "whole numbers beyond those of float64": sp.Skyline("i MIN, huge MAX"),
    "decimals and days": sp.Skyline("d MIN, day MAX, cents MIN"),
    "times, truth values and durations": sp.Skyline("t MIN, b MAX, wait MIN"),
    "distances of fractions": sp.Skyline(sp.around("f", 0.5) * sp.low("i")),
    "distances of whole numbers to an interval": sp.Skyline(sp.around("i", (-1, 1)) * sp.low("f")),
    "a chain as a factor": sp.Skyline((sp.low("i") & sp.high("f")) * sp.low("g")),
    "further levels": sp.Skyline((sp.low("f") * sp.high("i")) & sp.low("huge")),
    "groups of texts": sp.Skyline("f MIN, i MAX", by="s"),
    "groups of fractions": sp.Skyline("i MIN, huge MAX", by="f"),
    "groups of the preference, and others": sp.Skyline("b DIFF, f MIN, i MAX", by="cents"),
    "k-dominance": sp.KDominant(1, "f MIN, i MAX"),
    "top-delta": sp.TopDelta(2, "f MIN, i MAX, huge MIN", by="b"),
}


def table(rows: int, seed: int, *, gaps: bool) -> pa.Table:
    """Rows full of ties, of all types; with gaps, of nulls and NaN in every column."""
    random = Random(seed)

    def value(kind: pa.DataType, values: list[Any]) -> Any:
        if gaps and random.random() < 0.05:
            return NAN if pa.types.is_floating(kind) and random.random() < 0.5 else None
        return random.choice(values)

    columns = {name: pa.array([value(*one) for _ in range(rows)], one[0]) for name, one in TYPES.items()}
    return pa.table({**columns, "id": pa.array(range(rows))})


GAPPY, WHOLE = table(300, 1, gaps=True), table(300, 2, gaps=False)


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Iterator[dict[str, DataFrame]]:
    made = {name: spark.createDataFrame(rows).repartition(3) for name, rows in {"gappy": GAPPY, "whole": WHOLE}.items()}
    held = {name: frame.cache() for name, frame in made.items()}
    yield held
    for frame in held.values():
        frame.unpersist()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query that may be prefiltered is, although the rows are few."""
    monkeypatch.setattr(batch, "static_way", lambda *_: "prefilter")


def rules_of(query: sp.Query, rows: DataFrame) -> Prefilter:
    rules = rules_for(query, arrow_schema(rows), rows)
    assert rules is not None
    return rules


def usable(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[c] is not None and row[c] == row[c] for c in columns)]  # NaN


def test_spark_drops_the_rows_that_the_points_dominate_and_no_others(frames: dict[str, DataFrame]):
    rows = frames["gappy"]
    rules = {name: rules_of(query, rows) for name, query in QUERIES.items()}
    crossing = {name: prefiltered(rows, rows, rules_of_one) for name, rules_of_one in rules.items()}
    wrong = {}
    for name, crossed in tables(crossing).items():
        kept, (*columns, proof) = crossed.to_pylist(), crossed.column_names
        assert columns == rows.columns
        (points,) = {row[proof] for row in kept if row[proof] is not None}
        strong = decoded(pa.py_buffer(points)).to_pylist()
        came = Counter(row["id"] for row in usable(kept, rules[name].required))
        ranked = usable(GAPPY.to_pylist(), rules[name].required)
        expected = Counter(row["id"] for row in ranked if not any(drops(rules[name], point, row) for point in strong))
        first = sum(row[proof] is not None for row in kept)  # rows of tasks
        if expected - came or not (came - expected).total() <= first <= 3 or len(ranked) <= 1.3 * came.total():
            wrong[name] = {"missing": expected - came, "more": came - expected, "first": first, "all": len(ranked)}
    assert not wrong


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("invalid", "part"), slow_but([("drop", "some")], product(["drop", "error"], ["some", "others"]))
)
def test_the_answer_is_that_of_the_definition(invalid: Any, part: str, frames: dict[str, DataFrame]):
    """Some rows have gaps and are left out; slow: rows without any, and each other query."""
    rows = GAPPY.to_pylist() if invalid == "drop" else WHOLE.to_pylist()
    frame = frames["gappy" if invalid == "drop" else "whole"]
    queries = dict(islice(QUERIES.items(), part == "others", None, 2))
    found = tables({name: sp.ask(frame, query, invalid=invalid) for name, query in queries.items()})
    wanted = {}
    for name, query in queries.items():
        ranked = pa.Table.from_pylist(usable(rows, tuple(query.required)), WHOLE.schema)
        wanted[name] = multiset(query.lower(query.lift(ranked)))
    assert differing({name: multiset(answer.cast(WHOLE.schema)) for name, answer in found.items()}, wanted) == {}


@pytest.mark.parametrize(("name", "column", "gap"), [
    ("further levels", "f", None), ("further levels", "i", None), ("further levels", "huge", None),
    ("a chain as a factor", "f", None), ("a chain as a factor", "f", NAN), ("further levels", "f", NAN),
])  # fmt: skip
@pytest.mark.usefixtures("always")
def test_a_row_without_a_criterion_fails_the_query_dominated_or_not(
    spark: SparkSession, name: str, column: str, gap: float | None
):
    """Also a criterion of a further level or of a chain, which need not be read to compare the row with a point."""
    dominated = {one: pa.array([gap if one == column else values[-1]], kind) for one, (kind, values) in TYPES.items()}
    last = pa.table({**dominated, "id": [999]}).cast(WHOLE.schema)
    rows = spark.createDataFrame(pa.concat_tables([WHOLE, last])).cache()  # else Spark computes the columns as it plans
    with pytest.raises(SparkRuntimeException, match=f"cannot rank rows whose {column} is null"):
        sp.ask(rows, QUERIES[name]).collect()
    rows.unpersist()


@pytest.mark.usefixtures("always")
def test_no_rows_are_answered_by_none(spark: SparkSession):
    rows = spark.range(0).selectExpr("id * 1.0D AS x", "id")
    assert sp.skyline(rows, "x MIN, id MAX").collect() == []


@pytest.mark.usefixtures("always")
def test_rows_of_which_a_sample_shows_no_points_all_cross(spark: SparkSession):
    rows = spark.range(0, 3_000, numPartitions=3).selectExpr("id AS x", "-id AS y")
    assert sp.skyline(rows, "x MIN, y MIN").count() == 3_000


@pytest.mark.usefixtures("always")
def test_names_of_columns_may_be_any(spark: SparkSession):
    rows = spark.createDataFrame(pa.table({"a b": [1.0, 2.0, 3.0], "a b_0": [3, 4, 5], "c'd": ["x", "y", "x"]}))
    answer = sp.skyline(rows, sp.low("a b") * sp.low("a b_0"), by="c'd")
    assert sorted(answer.collect()) == [(1.0, 3, "x"), (2.0, 4, "y")]


def test_texts_that_a_collation_makes_equal_are_separate_groups(spark: SparkSession):
    """Spark would drop the rows of the one for a point of the other."""
    rows = spark.createDataFrame([("a", 1.0), ("A", 2.0)], "s string, x double")
    collated = rows.withColumn("s", sf.expr("s COLLATE UTF8_LCASE"))
    assert rules_for(sp.Skyline("x MIN", by="s"), arrow_schema(collated), collated) is None
    assert rules_for(sp.Skyline("x MIN", by="s"), arrow_schema(rows), rows) is not None


def best_of(answer: DataFrame) -> list[float]:
    return sorted(row.x for row in answer.collect())


def answered_from(sample: DataFrame, rows: DataFrame) -> DataFrame:
    """The answer over rows whose points come from another reading: of `sample`."""
    query = sp.Skyline("x MIN, y MIN")
    rules = rules_of(query, rows)
    lifted = batch._proven(prefiltered(sample, rows, rules), query, "error")
    return lifted.repartition(1).mapInArrow(batch._CombineAll(query, rules=rules), rows.schema)


def pairs(spark: SparkSession, least: float, rows: int = 60) -> DataFrame:
    values = least + np.arange(rows)
    return spark.createDataFrame(pa.table({"x": values, "y": values})).repartition(3)


@pytest.mark.core
def test_rows_that_change_between_the_two_readings_are_not_lost_unnoticed(spark: SparkSession):
    """The points of the first reading drop rows of the second one that nothing there dominates."""
    with pytest.raises(PythonException, match=r"the rows have changed .* \(x, y\) were gone when it read them again"):
        answered_from(pairs(spark, 0.0), pairs(spark, 10.0)).collect()


def test_rows_that_have_got_better_between_the_two_readings_are_answered(spark: SparkSession):
    assert best_of(answered_from(pairs(spark, 10.0), pairs(spark, 0.0))) == [0.0]
    assert best_of(answered_from(pairs(spark, 0.0), pairs(spark, 0.0))) == [0.0]


def test_points_of_rows_that_are_all_gone_drop_nothing(spark: SparkSession):
    assert answered_from(pairs(spark, 0.0), pairs(spark, 0.0).where("x < 0")).collect() == []
    assert best_of(answered_from(pairs(spark, 0.0).where("x < 0"), pairs(spark, 5.0))) == [5.0]


def test_many_rows_are_prefiltered_and_settings_stay(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    """If a sample costs no time, it pays for all rows that are too many for one task."""
    monkeypatch.setattr("skypane.control.static_way.SAMPLE_SECONDS", 0.0)
    before = settings(spark)
    rows = spark.range(2 * FEW).selectExpr("hash(id) AS x", "hash(id, 1) AS y")
    answer = sp.skyline(rows, "x MIN, y MIN")
    assert "BroadcastNestedLoopJoin" in plan_of(answer)
    assert sorted((row.x, row.y) for row in answer.collect()) == stairs(rows.toArrow())
    assert settings(spark) == before


def settings(spark: SparkSession) -> dict[str, str]:
    return {row.key: row.value for row in spark.sql("SET").collect()}


@pytest.mark.usefixtures("always")
def test_rows_are_read_when_the_answer_is_requested_and_not_before(spark: SparkSession):
    rows = spark.range(1_000).withColumn("x", sf.raise_error(sf.lit("these rows are read")).cast("double"))
    answer = sp.skyline(rows, "x MIN, id MIN")
    with pytest.raises(Exception, match="these rows are read"):
        answer.collect()


@pytest.mark.usefixtures("always")
def test_the_sample_of_many_partitions_is_read_in_as_many_tasks_as_run_at_once(spark: SparkSession):
    rows = spark.range(0, 10_000, numPartitions=50).selectExpr("hash(id) AS x", "hash(id, 1) AS y")
    answer = sp.skyline(rows, "x MIN, y MIN")
    assert "Coalesce 2" in plan_of(answer)  # the session has two threads
    assert sorted((row.x, row.y) for row in answer.collect()) == stairs(rows.toArrow())


def test_rows_that_are_cached_after_a_query_are_read_from_the_cache(spark: SparkSession):
    """A DataFrame keeps the first plan that is made of it, so a query makes none of the user's."""
    rows = spark.range(1_000).selectExpr("id AS x", "-id AS y")
    assert sp.skyline(rows, "x MIN, y MIN").count() == 1_000
    rows.cache()
    assert "InMemoryTableScan" in plan_of(rows)
    rows.unpersist()


def stairs(rows: pa.Table) -> list[tuple[int, int]]:
    """The skyline of two criteria: sorted by x, each row whose y is below that of all rows with a smaller x."""
    x, y = (rows.column(name).to_numpy() for name in "xy")
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    first = np.concatenate([[True], x[1:] != x[:-1]])
    lowest = np.minimum.accumulate(y)
    before = np.concatenate([[np.iinfo(np.int64).max], lowest[:-1]])
    starts = np.maximum.accumulate(np.where(first, np.arange(len(x)), 0))
    kept = (y == y[starts]) & (y < before[starts])
    return list(zip(x[kept].tolist(), y[kept].tolist(), strict=True))


def plan_of(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().toString())


def test_few_rows_are_answered_in_one_task_without_an_exchange(spark: SparkSession):
    plan = plan_of(sp.skyline(spark.range(FEW).selectExpr("id AS x"), "x MIN"))
    assert "Exchange" not in plan
    assert "Coalesce 1" in plan


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> DataFrame:
    pq.write_table(pa.table({"x": np.arange(50_000) / 3, "y": np.arange(50_000)}), tmp_path / "rows.parquet")
    return spark.read.parquet(str(tmp_path / "rows.parquet"))


@pytest.mark.core
def test_rows_in_memory_ranges_and_local_files_are_at_rest(spark: SparkSession, files: DataFrame):
    made = spark.range(1_000).selectExpr("id", "id / 3 AS x")
    assert known(made) == (1_000, True, False)
    held = made.orderBy("x").cache()
    assert rows_at_rest(held) is None, "they are not in memory yet"
    held.count()
    assert known(held.where("x > 5").select("x")) == (1_000, True, True)
    held.unpersist()
    rows, in_memory, _ = known(spark.createDataFrame(pa.table({"x": np.arange(1_000.0)})))
    assert in_memory
    assert 500 <= rows <= 1_000
    rows, *how = known(files.where("y > 5"))
    assert how == [False, True]
    assert 10_000 < rows < 100_000


def known(rows: DataFrame) -> tuple[int, bool, bool]:
    """The number of rows at rest, whether they are in memory, and whether they are filtered."""
    found = rows_at_rest(rows)
    assert found is not None
    assert found.rows / 10 < found.bytes / 8 < found.rows * 10
    return found.rows, found.in_memory, found.filtered


UNKNOWN = {
    "chance": lambda rows: rows.withColumn("z", sf.rand()),
    "a condition by chance": lambda rows: rows.where(sf.rand() < 0.5),
    "a sample": lambda rows: rows.sample(0.5, 1),
    "a function in Python": lambda rows: rows.withColumn("z", sf.udf(lambda x: x, "double")("x")),
    "a limit": lambda rows: rows.limit(10),
    "rows that are one of many": lambda rows: rows.dropDuplicates(["y"]),
    "a join": lambda rows: rows.join(rows.select("y"), "y"),
    "a subquery": lambda rows: rows.where("y IN (SELECT id FROM range(10))"),
    "a shuffle": lambda rows: rows.repartition(3),
    "an order": lambda rows: rows.orderBy("y"),
    "a checkpoint": lambda rows: rows.limit(10).localCheckpoint(),
    "rows of a function": lambda rows: rows.mapInArrow(lambda batches: batches, rows.schema),
    "rows of an RDD": lambda rows: rows.rdd.toDF(rows.schema),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_rows_that_may_differ_or_cost_much_a_second_time_are_not_at_rest(files: DataFrame, name: str):
    assert rows_at_rest(UNKNOWN[name](files)) is None


def test_of_a_spark_that_names_its_parts_in_another_way_nothing_is_known(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    rows = spark.range(10)
    assert rows_at_rest(rows) is not None
    monkeypatch.setattr("skypane.runtime.spark.rows_at_rest._FUNCTIONS", ("NO_SUCH_PATTERN",))
    assert rows_at_rest(rows) is None


@pytest.mark.core
def test_every_way_gives_the_same_answer(frames: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch):
    queries = {**{name: QUERIES[name] for name in ("groups of texts", "k-dominance")}, "top": sp.TopK(5, "f + i")}
    rows = frames["whole"].where("f > -10 AND f < 10")
    asked: dict[str, Any] = {}
    for way in ("tasks", "one task", "prefilter"):
        monkeypatch.setattr(batch, "static_way", lambda *_, way=way: way)
        asked |= {(name, way): sp.ask(rows, query) for name, query in queries.items()}
    some = WHOLE.filter((pc.field("f") > -10) & (pc.field("f") < 10))
    wanted = {name: multiset(query.lower(query.lift(some))) for name, query in queries.items()}
    found = {case: multiset(answer.cast(WHOLE.schema)) for case, answer in tables(asked).items()}
    assert differing(found, {case: wanted[case[0]] for case in found}) == {}
