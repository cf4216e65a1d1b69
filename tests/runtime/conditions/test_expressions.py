"""Expressions in place of columns, as SQL and as Spark Columns: the answers of the same query over columns made before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.parameters import slow_but
from tests.rows import multiset
from tests.runtime import driver
from tests.runtime.driver import WINDOWS, Task
from tests.runtime.named_answers import assert_same, bags, differing, kept, tables
from tests.runtime.streams import (
    drained,
    expected,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.jobs.building import BatchJob, build
from skypane.jobs.reading import parse
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.projection import projected
from skypane.types import CheckpointError, ConfigError
from skypane.windows import Windows

pytestmark = pytest.mark.spark

BATCHES = late_rows(3, batches=5, rows=60)
ROWS = pa.concat_tables(BATCHES)
PRODUCT = "price * weight"


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> Iterator[DataFrame]:
    held = spark.createDataFrame(ROWS).repartition(3).cache()
    yield held
    held.unpersist()


def made(df: DataFrame) -> DataFrame:
    """The rows with columns in place of the expressions of the tests."""
    return df.withColumns({
        "product": sf.expr("price * weight"), "far": sf.expr("abs(rating - 3)"), "who": sf.expr("upper(sensor)"),
        "whole": sf.expr("CAST(price AS INT)"), "near": sf.expr("abs(price - 2.5)"),
    })  # fmt: skip


@pytest.fixture(scope="module")
def columns(df: DataFrame) -> pa.Table:
    """The same as Spark computes it, once."""
    return made(df).toArrow()


def defined(query: sp.Query, rows: pa.Table, names: list[str], windows: Windows | None = None) -> Counter[str]:
    """What the definition answers over rows that have the columns, without those."""
    if windows is None:
        return multiset(query.lower(query.lift(rows)).select(names))
    plan = Plan(query, windows, "ts", sp.Watermark("0 seconds", max_ahead=None))
    answers = [answer.rows for answer in local.answers(plan, [rows, local.Drain()])]
    return multiset(pa.concat_tables(answers).select(["window_start", "window_end", *names]))


ALIKE: dict[str, tuple[Callable[[DataFrame], sp.Query], sp.Query]] = {
    "preference, as columns": (
        lambda df: sp.Skyline(sp.low(sf.col("price") * df.weight) * sp.high(sf.abs(df.rating - 3)), sf.upper("sensor")),
        sp.Skyline("product MIN, far MAX", "who"),
    ),
    "preference, as SQL": (
        lambda _: sp.Skyline(sp.low("price * weight") * sp.high("abs(rating - 3)"), "upper(sensor)"),
        sp.Skyline("product MIN, far MAX", "who"),
    ),
    "preference, around and groups": (
        lambda _: sp.Skyline(sp.diff("upper(sensor)") * sp.around("price * weight", 4) & sp.low("abs(rating - 3)")),
        sp.Skyline("product AROUND 4, who DIFF PRIOR TO far MIN"),
    ),
    "preference, as text": (
        lambda _: sp.Skyline("price * weight AROUND 4, upper(sensor) DIFF PRIOR TO (abs(rating - 3)) MIN"),
        sp.Skyline("product AROUND 4, who DIFF PRIOR TO far MIN"),
    ),
    "k-dominant": (
        lambda df: sp.KDominant(1, sp.low(df.price * df.weight) * sp.low(df.rating.cast("int"))),
        sp.KDominant(1, "product MIN, rating MIN"),
    ),
    "score, as a column": (
        lambda df: sp.TopK(3, sf.coalesce(sf.abs(df.rating - 3), sf.lit(0)), "sensor"),
        sp.TopK(3, "far", "sensor"),
    ),
    "score, as a column of SQL": (
        lambda _: sp.TopK(3, sf.expr("CASE WHEN true THEN abs(rating - 3) END")),
        sp.TopK(3, "far"),
    ),
    "score, as a column of arithmetic": (
        lambda df: sp.TopK(3, df.price * df.weight, "sensor"),
        sp.TopK(3, "product", "sensor"),
    ),
    "score, as SQL": (lambda _: sp.TopK(3, "nullif(price, -1) * weight"), sp.TopK(3, "product")),
    "top-k": (lambda df: sp.TopK(3, "rating", sf.upper(df.sensor)), sp.TopK(3, "rating", "who")),
}


OPTIONS: dict[str, dict[str, Any]] = {"all": {}, "windows": {"time": "ts", "window": WINDOWS}}
BOUNDS = {"all": [], "windows": ["window_start", "window_end"]}


@pytest.mark.parametrize("kind", slow_but(["all"], OPTIONS))
def test_rows_are_chosen_by_what_spark_computes_and_keep_their_columns(kind: str, df: DataFrame, columns: pa.Table):
    options = OPTIONS[kind]
    asked = {name: sp.ask(df, make(df), **options) for name, (make, _) in ALIKE.items()}
    assert [name for name, frame in asked.items() if frame.columns != [*BOUNDS[kind], *df.columns]] == []
    wanted = {name: defined(query, columns, df.columns, options.get("window")) for name, (_, query) in ALIKE.items()}
    assert all(wanted.values())
    assert differing(bags(asked), wanted) == {}


def test_aggregates_take_expressions_wherever_they_take_columns(df: DataFrame):
    cheap = sf.expr("price < 3 AND sensor LIKE 'a%'")
    rows = made(df).withColumns(
        {"cheap": cheap, "minus": sf.expr("-id"), "more": sf.expr("id + 1"), "rest": sf.expr("id % 7")}
    )
    pairs = {}
    for name, options in OPTIONS.items():
        answer = sp.aggregate(
            df, by=sf.upper("sensor").alias("who"), required="abs(rating - 3)", **options,
            total=sp.sum(df.price * df.weight), same=sp.sum("price * weight"),
            cheap=sp.count(where="price < 3 AND sensor LIKE 'a%'"), dear=sp.count_if(~(df.price < 3)),
            last=sp.max_by("abs(rating - 3)", df.price * df.weight), all=sp.collect_list("id + 1", order="-id"),
            ids=sp.count_distinct(sf.col("id") % 7), middle=sp.median(sf.col("price") * df.weight, where=df.rating > 2),
        )  # fmt: skip
        wanted = sp.aggregate(
            rows, by="who", required="far", **options,
            total=sp.sum("product"), same=sp.sum("product"), cheap=sp.count(where="cheap"), dear=sp.count(where="price >= 3"),
            last=sp.max_by("far", "product"), all=sp.collect_list("more", order="minus"), ids=sp.count_distinct("rest"),
            middle=sp.median("product", where="rating > 2"),
        )  # fmt: skip
        pairs[name] = answer, wanted
    pairs["sums of products"] = (
        sp.aggregate(df, by="upper(sensor)", total=sp.sum("price * weight")),
        df.groupBy(sf.expr("upper(sensor)")).agg(sf.sum(sf.col("price") * sf.col("weight")).alias("total")),
    )
    pairs["having"] = (
        sp.aggregate(df, by="sensor", total=sp.sum("price * 2"), having="total > 100"),
        df.groupBy("sensor").agg((2 * sf.sum("price")).alias("total")).where("total > 100"),
    )
    later = sf.expr("ts + INTERVAL 7 SECONDS")
    pairs["time"] = (
        sp.aggregate(df, time=sf.col("ts") + sf.expr("INTERVAL 7 SECONDS"), window="30 seconds", n=sp.count()),
        sp.aggregate(df.withColumn("ts", later), time="ts", window="30 seconds", n=sp.count()),
    )
    assert [name for name, (answer, wanted) in pairs.items() if answer.columns != wanted.columns] == []
    assert_same(pairs)


CLASHING: dict[str, tuple[Callable[[DataFrame], sp.Query], str]] = {
    "a column has the name of an expression": (lambda df: sp.Skyline(sp.low(df.price * df.weight)), "product MIN"),
    "an alias is a column": (lambda df: sp.Skyline(sp.low((df.price * df.weight).alias("Rating"))), "product MIN"),
    "an alias in SQL is a column": (lambda _: sp.Skyline(sp.low("price * weight AS RATING")), "product MIN"),
    "a column under the name of another": (lambda df: sp.Skyline(sp.low(df.price.alias("rating")) * sp.high("weight")), "price MIN, weight MAX"),
    "two expressions have one alias": (
        lambda df: sp.Skyline(sp.low((df.price * df.weight).alias("p")) * sp.high(sf.abs(df.rating - 3).alias("P"))),
        "product MIN, far MAX",
    ),
    "upper case": (lambda df: sp.Skyline(sp.low(sf.col("PRICE") * df.weight) * sp.high(sf.col("RATING"))), "product MIN, rating MAX"),
    "fields": (lambda _: sp.Skyline(sp.low("both.price") * sp.high("weight")), "rating MIN, weight MAX"),
    "a field as a column": (lambda _: sp.Skyline(sp.low(sf.col("both.price")) * sp.high("weight")), "rating MIN, weight MAX"),
    "a cast": (lambda df: sp.Skyline(sp.low(df.price.cast("int")) * sp.high("rating")), "whole MIN, rating MAX"),
    "a dot": (lambda _: sp.Skyline(sp.low("abs(price - 2.5)") * sp.high("rating")), "near MIN, rating MAX"),
}  # fmt: skip


def test_columns_of_the_rows_stay_whatever_the_columns_of_expressions_are_called(df: DataFrame, columns: pa.Table):
    rows = df.withColumns({f"({PRODUCT})": sf.lit("theirs"), "both": sf.struct(df.rating.alias("price"))})
    asked = {name: sp.ask(rows, written(rows)) for name, (written, _) in CLASHING.items()}
    assert [name for name, answer in asked.items() if answer.columns != rows.columns] == []
    found = tables(asked)
    wanted = {name: defined(sp.Skyline(plain), columns, df.columns) for name, (_, plain) in CLASHING.items()}
    own = {name: multiset(answer.select(df.columns)) for name, answer in found.items()}
    assert differing(own, wanted) == {}
    theirs = {
        (row[f"({PRODUCT})"], row["both"]["price"] == row["rating"])
        for one in found.values()
        for row in one.to_pylist()
    }
    assert theirs == {("theirs", True)}


def test_expressions_are_the_same_if_spark_computes_the_same(df: DataFrame):
    """Spark's SQL of a text is that of the column of its name."""
    column, text = (sf.concat(one, sf.lit("!")) for one in (df.sensor, sf.lit("sensor")))
    answer = sp.aggregate(df, a=sp.collect_set(column), b=sp.collect_set(text))
    wanted = df.agg(sf.collect_set(column).alias("a"), sf.collect_set(text).alias("b"))
    assert [{*values} for values in answer.first() or ()] == [{*values} for values in wanted.first() or ()]
    lone = sp.aggregate(
        df.withColumn("price", sf.lit("theirs")), a=sp.collect_set("price"), b=sp.collect_set(sf.lit("price"))
    )
    assert list(lone.first() or ()) == [["theirs"], ["price"]]
    once = sp.Aggregate(a=sp.sum(df.price + 1), b=sp.max(df.price + 1), c=sp.min("price + 1"), d=sp.max("price + 1"))
    assert projected(df, ROWS.schema, once).computed == ("(price + 1)", "price + 1")


def test_null_and_nan_are_those_that_spark_computes(df: DataFrame):
    """A function of this package skips a null and counts NaN as Spark does; a criterion that is either is invalid."""
    rows = df.select(
        "id", "sensor", sf.expr("nullif(id % 4, 0)").alias("a"), sf.expr("if(id % 3 = 0, double('NaN'), id)").alias("b")
    )
    answer = sp.aggregate(
        rows, by="sensor", n=sp.count("a + 1"), some=sp.count(where="a > 1 OR NULL"), total=sp.sum("a * 2"),
        most=sp.max("b + 1"), least=sp.min(sf.nanvl("b", sf.lit(-1.0))), listed=sp.count_distinct("b * 2"),
    )  # fmt: skip
    wanted = rows.groupBy("sensor").agg(
        sf.expr("count(a + 1)").alias("n"), sf.expr("count_if(a > 1 OR NULL)").alias("some"), sf.expr("sum(a * 2)").alias("total"),
        sf.expr("max(b + 1)").alias("most"), sf.expr("min(nanvl(b, -1))").alias("least"),
        sf.expr("count(DISTINCT b * 2)").alias("listed"),
    )  # fmt: skip
    queries = (sp.Skyline(sp.low("a * 2")), sp.Skyline(sp.high(sf.col("b") * 2)), sp.TopK(1, sf.col("a") % 2))
    for query in queries:
        with pytest.raises(PySparkException, match="cannot rank"):
            sp.ask(rows, query).collect()
    left = {number: sp.ask(rows, query, invalid="drop") for number, query in enumerate(queries)}
    found = bags({"ours": answer, "theirs": wanted, **left})
    assert found["ours"] == found["theirs"]
    assert all(found[number] for number in left)


def test_names_that_clash_once_spark_has_named_expressions_are_refused(df: DataFrame):
    with pytest.raises(ConfigError, match="'n' is a column of by and an aggregate"):
        sp.aggregate(df, by=sf.upper("sensor").alias("n"), n=sp.count())
    with pytest.raises(ConfigError, match="by names the column 'sensor' twice"):
        sp.aggregate(df, by=("sensor", sf.col("SENSOR")), n=sp.count())


def test_an_expression_is_computed_for_each_row_whatever_the_condition(df: DataFrame):
    """Spark's own FILTER computes it for those rows only for which the condition is true."""
    rows = df.select("id", (df.id % 3).alias("parts"))
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        sp.aggregate(rows, total=sp.sum("id / parts", where="parts > 0")).collect()
    answer = sp.aggregate(rows, total=sp.sum("try_divide(id, parts)", where="parts > 0"))
    wanted = rows.agg(sf.expr("sum(id / parts) FILTER (WHERE parts > 0)").alias("total"))
    assert answer.collect() == wanted.collect()


JOB = """
name: expressions
mode: batch
source: {{format: parquet, path: "{path}"}}
window: {{time: ts + INTERVAL 7 SECONDS, length: 30 seconds}}
query:
  kind: aggregate
  by: upper(sensor) AS who
  required: abs(rating - 3)
  functions: {{n: count(), total: sum(price * weight), last: "max_by(upper(sensor), price / 2)", whole: "sum('CAST(price AS INT)')"}}
output: {{format: console}}
"""


def test_a_job_file_takes_expressions(spark: SparkSession, df: DataFrame, tmp_path: Path):
    df.write.parquet(str(tmp_path / "rows"))
    ready = build(parse(JOB.format(path=tmp_path / "rows")), spark)
    assert isinstance(ready, BatchJob)
    wanted = sp.aggregate(
        df.withColumn("at", sf.expr("ts + INTERVAL 7 SECONDS")), by=sf.upper("sensor").alias("who"), time="at", window="30 seconds",
        required="abs(rating - 3)", n=sp.count(), total=sp.sum(df.price * df.weight), last=sp.max_by(sf.upper("sensor"), df.price / 2),
        whole=sp.sum(df.price.cast("int")),
    )  # fmt: skip
    assert ready.answers.columns == wanted.columns
    assert_same({"of a job file": (ready.answers, wanted)})


def plan_of(df: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    """Return a plan without the numbers of its expressions."""
    capsys.readouterr()
    df.explain()
    return re.sub(r"#\d+L?|plan_id=\d+", "", capsys.readouterr().out)


def test_the_plan_of_columns_as_they_are_is_that_of_their_names(df: DataFrame, capsys: pytest.CaptureFixture[str]):
    """A Spark Column that is a column of the rows is projected no second time."""
    asked: tuple[dict[str, Any], ...] = (
        {"by": "sensor", "total": sp.sum("price")},
        {"by": df.sensor, "total": sp.sum(sf.col("price"))},
    )
    by_names, by_columns = (plan_of(sp.aggregate(df, **one), capsys) for one in asked)
    assert by_names == by_columns
    assert "InMemoryTableScan [sensor, price]" in by_names


def test_only_what_the_query_reads_crosses_to_python(df: DataFrame, capsys: pytest.CaptureFixture[str]):
    plan = plan_of(sp.aggregate(df, total=sp.sum("price * weight")), capsys)
    line = next(line for line in plan.splitlines() if "Project [" in line)
    assert line.endswith(f"AS {PRODUCT}]"), plan
    assert line.count(",") == 0, plan


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        (lambda: sp.Skyline(sp.low("pric * 2")), r"low\(\): column 'pric \* 2' does not exist.*, and Spark cannot compute it: .*UNRESOLVED_COLUMN"),
        (lambda: sp.Skyline(sp.low("price weigth")), r"low\(\): column 'price weigth' does not exist.*; to call an expression so, write 'price AS weigth'"),
        (lambda: sp.Aggregate("upper(sensor) who", n=sp.count()), "by: .*write 'upper.sensor. AS who'"),
        (lambda: sp.Skyline("price * MIN"), "preference: .*PARSE_SYNTAX_ERROR"),
        (lambda: sp.Skyline(sp.low("price *")), r"low\(\): .*PARSE_SYNTAX_ERROR"),
        (lambda: sp.Skyline(sp.low("explode(array(price))")), r"low\(\): .*UNSUPPORTED_GENERATOR"),
        (lambda: sp.Skyline(sp.low("*")), r"low\(\): '\*' is 7 columns: write one"),
        (lambda: sp.Skyline(sp.low(sf.col("pric"))), r"low\(\): column 'pric' does not exist \(did you mean 'price'\?\)"),
        (lambda: sp.TopK(1, sf.col("pric") % 2), "^score: Spark cannot compute .*pric.*UNRESOLVED_COLUMN"),
        (lambda: sp.TopK(1, sf.array("price")), "has no order, and cannot be a score"),
        (lambda: sp.TopK(1, "2 * price -"), r"^score: Spark cannot compute '2 \* price -': .*PARSE_SYNTAX_ERROR"),
        (lambda: sp.TopK(1, "pric % 2"), "^score: Spark cannot compute 'pric % 2': .*UNRESOLVED_COLUMN"),
        (lambda: sp.Aggregate(n=sp.count(where="price IN )3(")), r"^where: Spark cannot compute 'price IN \)3\(': .*PARSE_SYNTAX_ERROR"),
        (lambda: sp.Aggregate(n=sp.count_if(sf.col("pric") > 1)), "^count_if: Spark cannot compute .*pric.*UNRESOLVED_COLUMN"),
        (lambda: sp.Aggregate(n=sp.count(where=sf.col("price") + 1)), "is of type double, not boolean"),
        (lambda: sp.Aggregate(n=sp.sum("upper(price")), "sum: .*PARSE_SYNTAX_ERROR"),
        (lambda: sp.Aggregate(n=sp.sum(sf.sum("price"))), "sum: "),
        (lambda: sp.Aggregate("sensor || nothing", n=sp.count()), "by: .*UNRESOLVED_COLUMN"),
        (lambda: sp.Aggregate(n=sp.sum("upper(sensor)")), "sum of column 'upper.sensor.' of type string: it holds no numbers"),
    ],
)  # fmt: skip
def test_an_error_names_the_argument_and_has_the_reason_of_spark(
    df: DataFrame, query: Callable[[], sp.Query], complaint: str
):
    with pytest.raises(ConfigError, match=f"(?s){complaint}"):
        sp.ask(df, query())


HAVING: dict[str, Any] = {
    "by workers": "total * 2 > 100 AND NOT (sensor IS NULL OR sensor IN ('b')) AND total <> 7",
    "text": "total > 100 AND upper(sensor) LIKE 'A%'",
    "null": "nullif(total, 0) > 100",
    "column": lambda: sf.col("total") * 2 > sf.lit(200),
    "function": lambda: sf.col("sensor").endswith("a"),
}


def test_spark_evaluates_a_condition_on_the_answers_that_workers_cannot(df: DataFrame):
    windows: dict[str, Any] = {"time": "ts", "window": "20 seconds", "slide": "10 seconds"}
    havings = {case: written() if callable(written) else written for case, written in HAVING.items()}
    for options in ({}, windows):
        asked = {
            case: sp.aggregate(df, by="sensor", total=sp.sum("price"), having=one, **options)
            for case, one in havings.items()
        }
        every = kept(sp.aggregate(df, by="sensor", total=sp.sum("price"), **options), havings)
        assert all(rows.num_rows for rows in every.values())
        assert differing(bags(asked), {case: multiset(rows) for case, rows in every.items()}) == {}


def test_a_condition_that_spark_cannot_evaluate_is_named(df: DataFrame):
    for having in ("totl LIKE 'a'", "upper(sensor", sf.col("totl") > 1):
        with pytest.raises(ConfigError, match=r"having=.*: Spark cannot evaluate it on the answers: "):
            sp.aggregate(df, by="sensor", total=sp.sum("price"), having=having)
    complaint = r"having=.* is evaluated by Spark, after the workers have chosen the rows of top"
    with pytest.raises(ConfigError, match=complaint):
        sp.aggregate(df, by="sensor", n=sp.count(), having="sensor LIKE 'a'", top=1, rank_by="n")


def with_product(batches: list[pa.Table]) -> list[pa.Table]:
    return [
        batch.append_column(PRODUCT, pc.multiply(batch["price"], pc.cast(batch["weight"], pa.float64())))
        for batch in batches
    ]


STREAMED: dict[str, tuple[Callable[[], sp.Query], sp.Query]] = {
    "skyline": (lambda: sp.Skyline(sp.low((sf.col("price") * sf.col("weight")).alias(PRODUCT)) * sp.high("rating"), "sensor"),
                sp.Skyline(sp.low(PRODUCT) * sp.high("rating"), "sensor")),
    "sums": (lambda: sp.Aggregate("sensor", total=sp.sum("price * weight")), sp.Aggregate("sensor", total=sp.sum(PRODUCT))),
}  # fmt: skip


def job_of(spark: SparkSession, folder: Path, query: sp.Query, **options: Any) -> sp.Job:
    return driver.job_of(spark, Task(str(folder), late=False), query, **options)


def finish_and_continue(folder: Path, first: Callable[[], sp.Job], second: Callable[[], sp.Job] | None = None) -> None:
    """Run a job over some batches, and over the others it again, or a second one that is the same to the checkpoint."""
    write_batches(folder / "in", BATCHES[:3])
    finish(first())
    write_batches(folder / "in", BATCHES[3:], first=3)
    job = (second or first)()
    assert not job.changes()
    drained(job)


@pytest.mark.parametrize("name", slow_but(["skyline"], STREAMED))
def test_a_stream_answers_as_the_definition_over_projected_rows(spark: SparkSession, tmp_path: Path, name: str):
    """Stopped and started in between, so that the partials of computed columns are read again."""
    written, plain = STREAMED[name]
    finish_and_continue(tmp_path, lambda: job_of(spark, tmp_path, written()))
    assert_projected(tmp_path / "out", plain)


def assert_projected(out: Path, plain: sp.Query) -> None:
    plan = Plan(plain, WINDOWS, "ts", sp.Watermark("20 seconds"), computed=(PRODUCT,))
    found = parquet_rows(out)
    assert windows_of(found) == expected(plan, [*with_product(BATCHES), local.Drain()]), out.name
    assert PRODUCT not in found.schema.names


def test_late_rows_keep_what_was_computed(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES)
    late = tmp_path / "late"
    finish(job_of(spark, tmp_path, STREAMED["sums"][0](), late=late, progress=sp.Watermark("0 seconds")))
    found = parquet_rows(late)
    assert found.num_rows
    assert found[PRODUCT] == pc.multiply(found["price"], pc.cast(found["weight"], pa.float64()))


def test_a_changed_expression_is_another_column(spark: SparkSession, tmp_path: Path):
    def job(expression: str) -> sp.Job:
        return job_of(spark, tmp_path, sp.Skyline(sp.low(expression) * sp.high("rating")))

    write_batches(tmp_path / "in", BATCHES)
    finish(job("price * weight"))
    assert not job("price * weight").changes()
    assert any("price + weight" in line for line in job("price + weight").changes().refused)
    with pytest.raises(CheckpointError, match=r"price \+ weight"):
        job("price + weight").start()


@pytest.mark.parametrize(
    ("query", "argument"),
    [
        (lambda: sp.Skyline(sp.low("rand() * price")), r"low\(\): 'rand\(\) \* price'"),
        (lambda: sp.Aggregate(sf.expr("uuid()").alias("key"), n=sp.count()), "by: 'uuid.* AS key'"),
        (lambda: sp.Aggregate(n=sp.count(where=sf.rand(7) > 0.5)), "where: '.*rand.*'"),
        (lambda: sp.TopK(1, sf.monotonically_increasing_id() % 3), "score: '.*monotonically_increasing_id.*'"),
        (lambda: sp.TopK(1, "rand() * price"), r"score: 'rand\(\) \* price'"),
    ],
    ids=["criterion", "key", "condition", "score as a column", "score as SQL"],
)
def test_a_stream_refuses_what_is_not_the_same_when_a_batch_is_read_again(
    spark: SparkSession, df: DataFrame, tmp_path: Path, query: Callable[[], sp.Query], argument: str
):
    write_batches(tmp_path / "in", BATCHES[:1])
    with pytest.raises(ConfigError, match=f"^{argument} is not deterministic to Spark: .*withColumn"):
        job_of(spark, tmp_path, query())
    assert sp.ask(df, query()).count()


def test_a_stream_takes_the_time_of_its_batches_which_spark_records(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES[:1])
    later = "unix_timestamp(current_timestamp()) > price"
    assert later in job_of(spark, tmp_path, sp.Aggregate(n=sp.count_if(sf.expr(later).alias(later)))).rows.columns


def test_functions_of_expressions_may_change_their_places(spark: SparkSession, tmp_path: Path):
    parts = {"a": sp.sum("price * weight"), "b": sp.max("abs(rating - 3)"), "c": sp.min("-id")}
    write_batches(tmp_path / "in", BATCHES)
    finish(job_of(spark, tmp_path, sp.Aggregate("sensor", a=parts["a"], b=parts["b"])))
    changes = job_of(spark, tmp_path, sp.Aggregate("sensor", c=parts["c"], b=parts["b"], a=parts["a"])).changes()
    assert not changes.refused
    assert changes.begins


NAMED: dict[str, tuple[sp.Query, Callable[[], sp.Query]]] = {
    "skyline": (sp.Skyline("price MIN, rating MAX", "sensor"), lambda: sp.Skyline(sp.low(sf.col("price")) * sp.high(sf.col("rating")), sf.col("sensor"))),
    "aggregate": (sp.Aggregate("sensor", total=sp.sum("price")), lambda: sp.Aggregate(sf.col("sensor"), total=sp.sum(sf.col("price")))),
    "top-k": (sp.TopK(2, "rating", "sensor"), lambda: sp.TopK(2, sf.col("rating"), sf.col("sensor"))),
}  # fmt: skip


def jobs_of(spark: SparkSession, tmp_path: Path, queries: dict[str, sp.Query]) -> sp.Job:
    return sp.streams(
        read_batches(spark, tmp_path / "in", ROWS.schema), queries, time="ts", window=WINDOWS, progress=sp.Watermark("20 seconds"),
        checkpoint=tmp_path / "checkpoint", output=tmp_path / "out",
    )  # fmt: skip


def test_a_checkpoint_of_names_continues_with_columns(spark: SparkSession, tmp_path: Path):
    """As a query of Columns, whose names were read from how they show themselves, was recorded before."""
    by_names = {name: named for name, (named, _) in NAMED.items()}
    by_columns = {name: columns() for name, (_, columns) in NAMED.items()}
    finish_and_continue(
        tmp_path, lambda: jobs_of(spark, tmp_path, by_names), lambda: jobs_of(spark, tmp_path, by_columns)
    )
    for name, (named, _) in NAMED.items():
        plan = Plan(named, WINDOWS, "ts", sp.Watermark("20 seconds"))
        assert windows_of(parquet_rows(tmp_path / "out" / name)) == expected(plan, [*BATCHES, local.Drain()]), name


def test_several_queries_over_one_stream_each_leave_out_what_was_computed(spark: SparkSession, tmp_path: Path):
    """Stopped and started in between, as one query is."""
    finish_and_continue(
        tmp_path, lambda: jobs_of(spark, tmp_path, {name: written() for name, (written, _) in STREAMED.items()})
    )
    for name, (_, plain) in STREAMED.items():
        assert_projected(tmp_path / "out" / name, plain)


def test_a_history_of_the_front_leaves_out_what_was_computed(df: DataFrame):
    options: dict[str, Any] = {"time": "ts", "window": "50 seconds"}
    answer = sp.skyline_history(df, sp.low("price * weight") * sp.high("rating"), by=sf.upper("sensor"), **options)
    wanted = sp.skyline_history(made(df), "product MIN, rating MAX", by="who", **options).select(answer.columns)
    assert answer.columns == wanted.columns
    assert_same({"history": (answer, wanted)})


def test_updates_of_a_front_are_those_of_a_column_made_before(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES)
    rows = read_batches(spark, tmp_path / "in", ROWS.schema)
    found = {}
    for name, frame in {"written": rows, "made": rows.withColumn(PRODUCT, sf.expr(PRODUCT))}.items():
        job = sp.continuous_skyline(
            frame, sp.low(PRODUCT) * sp.high("rating"), time="ts", window="50 seconds", progress=sp.Watermark("20 seconds"),
            checkpoint=tmp_path / name / "checkpoint", output=tmp_path / name / "updates",
        )  # fmt: skip
        drained(job)
        found[name] = parquet_rows(tmp_path / name / "updates")
    assert found["written"].num_rows
    assert found["written"].schema.names == found["made"].schema.names
    assert multiset(found["written"]) == multiset(found["made"])
