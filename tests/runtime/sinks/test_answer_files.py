"""Answers of batch queries that workers write: those of the definition, in a folder that has all of them or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.operators.aggregates.tables import tables as tables_of_keys
from tests.parameters import slow_but
from tests.rows import Counts, multiset, split

import skypane as sp
from skypane.locations import Location
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.answer_files import WriteAnswers, is_inside
from skypane.runtime.spark.batch import _AnswerRuns, _LiftPanes
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.source_files import files_of
from skypane.types import ConfigError, SkypaneError
from skypane.windows import Windows

ROUTED = pa.schema([("run", pa.int64()), ("panes", pa.list_(pa.int64())), ("partial", pa.binary())])


def written(folder: Path) -> pa.Table:
    return ds.dataset(folder, format="parquet").to_table()


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def by_tasks(plan: Plan, rows: pa.Table, store: DocumentStore, run: int, parts: int, cuts: list[int]) -> list[str]:
    """Answer rows as the tasks of Spark do, each run or part of its keys by a task of its own; return the files."""
    lift = _LiftPanes(plan.query, plan.gate, run, "drop", parts)
    lifted = [one for part in split(rows, cuts) for batch in lift(part.to_batches()) for one in batch.to_pylist()]
    routed: dict[int, list[dict[str, Any]]] = {}
    for one in lifted:
        for slot in range(one["first"], one["last"] + 1, parts):
            routed.setdefault(slot, []).append({"run": slot, "panes": one["panes"], "partial": one["partial"]})
    write = WriteAnswers(
        _AnswerRuns(plan.window_query(rows.schema), run, parts), plan.output_schema(rows.schema), store
    )
    tasks = (pa.Table.from_pylist(routed[slot], ROUTED).to_batches() for slot in sorted(routed))
    return [name for task in tasks for report in write(task) for name in report.column("file").to_pylist()]


@given(
    tables_of_keys(),
    st.integers(1, 5).map(lambda length: Windows(length * 1_000_000, 1_000_000)),
    st.integers(1, 9),
    st.integers(1, 4),
    st.lists(st.integers(0, 25), max_size=3),
)
def test_tasks_that_share_keys_write_the_answers_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, rows: pa.Table, shape: Windows, run: int, parts: int, cuts: list[int]
):
    store = DocumentStore.at(str(tmp_path_factory.mktemp("files")))
    query = sp.Aggregate("key", n=sp.count(), total=sp.sum("f"), most=sp.max("text"))
    plan = Plan(query, shape, "at", sp.Watermark("20 seconds"))
    files = by_tasks(plan, rows, store, run, parts, [min(at, rows.num_rows) for at in cuts])
    schema = plan.output_schema(rows.schema)
    found = pa.concat_tables([schema.empty_table(), *(store.read_parquet(name, schema) for name in files)])
    wanted = [answer.rows for answer in local.answers(plan, [rows, local.Drain()])]
    assert multiset(found) == multiset(pa.concat_tables([schema.empty_table(), *wanted]))
    assert sorted(store.names()) == sorted(files), "a task without answers leaves no file"


def sample(n: int = 600, seed: int = 3) -> pa.Table:
    """Rows of two hours, with keys of which some are rare."""
    random = Random(seed)
    start = datetime(2026, 3, 1, 8, tzinfo=UTC)
    return pa.table({
        "time": pa.array([start + timedelta(seconds=random.randrange(7200)) for _ in range(n)], pa.timestamp("us", "UTC")),
        "key": [random.choice([1, 2, 3, 5, 8, random.randrange(40)]) for _ in range(n)],
        "city": [random.choice(["süd", "nord", None]) for _ in range(n)],
        "x": [float(random.randrange(50)) for _ in range(n)],
        "y": [float(random.randrange(50)) for _ in range(n)],
    })  # fmt: skip


ROWS = sample()
HOURS: dict[str, Any] = {"time": "time", "window": "50 minutes", "slide": "20 minutes"}
QUERIES: dict[str, Query] = {
    "aggregate": sp.Aggregate("key", n=sp.count(), mean=sp.avg("x"), most=sp.max("y")),
    "aggregate of texts": sp.Aggregate(["city", "key"], time="time", n=sp.count(), last=sp.last("city"), all=sp.collect_set("x")),
    "chosen": sp.Aggregate("key", having="n > 3", n=sp.count()),
    "the best keys": sp.Aggregate("key", top=2, rank_by="n", n=sp.count()),
    "one key": sp.Aggregate(n=sp.count(), total=sp.sum("x")),
    "skyline": sp.Skyline("x MIN, y MAX"),
    "skyline by key": sp.Skyline("x MIN, y MAX", by="key"),
    "computed": sp.Skyline("abs(x - 7) MIN, y MAX", by="upper(city)"),
    "top_k": sp.TopK(3, "x - y", by="key"),
    "k_dominant": sp.KDominant(1, "x MIN, y MAX"),
    "user-defined": Counts("city"),
}  # fmt: skip


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> Iterator[DataFrame]:
    held = spark.createDataFrame(ROWS).repartition(3).cache()
    yield held
    held.unpersist()


def rows_of(answers: DataFrame) -> Counter[str]:
    return multiset(answers.toArrow())


OFTEN = [("aggregate", "windows"), ("one key", "all rows"), ("skyline by key", "windows"), ("user-defined", "all rows")]


@pytest.mark.core
@pytest.mark.parametrize(("name", "whole"), slow_but(OFTEN, product(QUERIES, ("all rows", "windows"))))
def test_workers_write_what_the_dataframe_has(df: DataFrame, name: str, whole: str, tmp_path: Path):
    options = HOURS if whole == "windows" else {}
    lazy = sp.ask(df, QUERIES[name], **options)
    answers = sp.ask(df, QUERIES[name], **options, output=tmp_path / "out")
    assert rows_of(answers) == rows_of(lazy)
    assert answers.dtypes == lazy.dtypes
    assert Counter(map(repr, written(tmp_path / "out").to_pylist())) == rows_of(lazy)
    assert names(tmp_path) == ["out"]
    assert all(name.startswith("part-") and name.endswith(".parquet") for name in names(tmp_path / "out"))


@pytest.mark.core
def test_windows_in_a_folder_are_those_of_sparks_own_window(df: DataFrame, tmp_path: Path):
    """Each key once a window, although two tasks share the keys of each."""
    answers = sp.aggregate(
        df, by="key", **HOURS, output=tmp_path / "out", n=sp.count(), total=sp.sum("x"), most=sp.max("y")
    )
    grouped = df.groupBy(sf.window("time", "50 minutes", "20 minutes").alias("w"), "key")
    wanted = grouped.agg(sf.count("*").alias("n"), sf.sum("x").alias("total"), sf.max("y").alias("most"))
    stamps = sf.col("w.start").alias("window_start"), sf.col("w.end").alias("window_end")
    assert rows_of(answers) == rows_of(wanted.select(*stamps, "key", "n", "total", "most"))
    files = [pq.read_table(tmp_path / "out" / name) for name in names(tmp_path / "out")]
    if not hasattr(df, "repartitionById"):  # before Spark 4.1 a hash chooses the tasks, and both parts may have one
        return
    assert len(files) == 2
    keys = [{(row["window_start"], row["key"]) for row in table.to_pylist()} for table in files]
    assert not keys[0] & keys[1]
    assert {start for start, _ in keys[0]} & {start for start, _ in keys[1]}, "both have windows in common"


@pytest.mark.parametrize("options", [{}, HOURS], ids=["all rows", "windows"])
def test_an_answer_without_rows_has_its_columns(df: DataFrame, options: dict[str, Any], tmp_path: Path):
    answers = sp.skyline(df.limit(0), "x MIN", **options, output=tmp_path / "out")
    assert answers.count() == 0
    assert written(tmp_path / "out").column_names == answers.columns == sp.skyline(df, "x MIN", **options).columns


def test_a_second_run_is_refused_or_replaces_the_first(df: DataFrame, tmp_path: Path):
    out = tmp_path / "out"
    first = rows_of(sp.top_k(df, 2, "x", output=out))
    with pytest.raises(ConfigError, match=r"output: .*/out has files already: .*if_exists='overwrite'"):
        sp.top_k(df, 3, "x", output=out)
    assert Counter(map(repr, written(out).to_pylist())) == first
    answers = sp.top_k(df, 3, "x", output=sp.Directory(str(out)), if_exists="overwrite")
    assert rows_of(answers) == rows_of(sp.top_k(df, 3, "x")) != first
    assert names(tmp_path) == ["out"]


def test_the_rows_that_a_query_reads_are_never_replaced(spark: SparkSession, tmp_path: Path):
    folder = tmp_path / "rows of 2026"
    folder.mkdir()
    pq.write_table(ROWS, folder / "rows.parquet")
    rows = spark.read.parquet(str(folder))
    with pytest.raises(
        ConfigError, match=r"output: the query reads .*/rows of 2026/rows.parquet, which its answers would"
    ):
        sp.skyline(rows, "x MIN", output=folder, if_exists="overwrite")
    assert names(tmp_path) == ["rows of 2026"]
    assert names(folder) == ["rows.parquet"]


def test_rows_in_sparks_cache_are_read_from_their_files_still(spark: SparkSession, tmp_path: Path):
    """The plan that reads the cache has no files; the rows would be lost with it."""
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    rows = spark.read.parquet(str(tmp_path / "rows.parquet")).where("x > 1").cache()
    try:
        assert rows.count()
        assert [Path(file).name for file in files_of(rows.select("x", "key"))] == ["rows.parquet"]
        with pytest.raises(ConfigError, match=r"output: the query reads .*/rows.parquet, which its answers would"):
            sp.skyline(rows, "x MIN", output=tmp_path, if_exists="overwrite")
    finally:
        rows.unpersist()


@pytest.mark.parametrize(
    ("file", "folder", "inside"),
    [
        ("file:///data/out/a.parquet", "/data/out", True),
        ("/data/out/day=1/a.parquet", "/data/out", True),
        ("/data/output/a.parquet", "/data/out", False),
        ("/data/a.parquet", "/data/out", False),
        ("hdfs://name:8020/out/a.parquet", "hdfs:///out", True),  # the default host
        ("hdfs://name:8020/out/a.parquet", "hdfs://name:8020/out", True),
        ("hdfs://name:8020/out/a.parquet", "hdfs://other:8020/out", False),
        ("hdfs://name:8020/out/a.parquet", "/out", False),
    ],
)
def test_a_file_is_inside_a_folder_by_its_name(file: str, folder: str, inside: bool):
    assert is_inside(Location.of(file), Location.of(folder)) is inside


def test_answers_that_were_in_sparks_cache_are_read_again_when_they_are_replaced(df: DataFrame, tmp_path: Path):
    first = sp.top_k(df, 2, "x", output=tmp_path / "out").cache()
    try:
        assert first.count() == 2
        answers = sp.top_k(df, 3, "x", output=tmp_path / "out", if_exists="overwrite")
        assert rows_of(answers) == rows_of(sp.top_k(df, 3, "x"))
    finally:
        first.unpersist()


def test_a_worker_that_does_not_reach_the_folder_reports_it(tmp_path: Path):
    """As on a machine of its own, with a disk of its own."""
    store = DocumentStore(str(tmp_path / "of the driver"))
    with pytest.raises(ConfigError, match=r"this worker does not find .*/of the driver: name a folder that all"):
        list(WriteAnswers(iter, ROWS.schema, store)(ROWS.to_batches()))
    assert names(tmp_path) == []


@pytest.mark.parametrize("options", [{}, HOURS], ids=["all rows", "windows"])
def test_an_error_leaves_the_answers_before_and_nothing_beside_them(
    df: DataFrame, spark: SparkSession, options: dict[str, Any], tmp_path: Path
):
    out = tmp_path / "out"
    before = rows_of(sp.skyline(df, "x MIN", **options, output=out))
    broken = ROWS.set_column(3, "x", pa.array([None, *ROWS["x"].to_pylist()[1:]], pa.float64()))
    with pytest.raises(SkypaneError) as error:
        sp.skyline(spark.createDataFrame(broken), "x MIN", **options, output=out, if_exists="overwrite")
    assert "out is as before, without the answers of this run: " in str(error.value)
    assert "cannot rank rows whose x is null or NaN" in str(error.value)
    assert "\n" not in str(error.value)
    assert Counter(map(repr, written(out).to_pylist())) == before
    assert names(tmp_path) == ["out"]


class Broken(Counts):
    """Fails when it has answered two windows, which are written by then."""

    def lower(self, partial: pa.Table) -> pa.Table:
        answer = super().lower(partial)
        if pc.sum(answer["n"]).as_py() > 150:
            raise RuntimeError("it is broken")
        return answer


def test_a_task_that_fails_on_its_way_leaves_no_file(df: DataFrame, tmp_path: Path):
    with pytest.raises(SkypaneError, match=r"without the answers of this run: .*it is broken"):
        sp.ask(df, Broken("city"), **HOURS, output=tmp_path / "out")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"output": sp.Directory("out", format="csv")}, "write a parquet file each, got format 'csv': let Spark write"),
        (
            {"output": sp.Directory("out", one_file=True)},
            "write a parquet file each, got one_file=True: let Spark write",
        ),
        ({"output": sp.Directory("out", roll="1 minute")}, "write a parquet file each, got roll=: let Spark write"),
        ({"output": sp.Console()}, "a batch query writes a folder of parquet files, got Console"),
        ({"output": lambda *_: None}, "a batch query writes a folder of parquet files, got <function"),
        ({"output": "s3://bucket/out"}, "is in an object store"),
        ({"output": "out", "if_exists": "append"}, "if_exists: use one of error, overwrite"),
        ({"if_exists": "overwrite"}, "if_exists needs output="),
        ({"output": "out", "having": "n > 3 AND city LIKE 's%'"}, "having=.* is evaluated by Spark, and with output="),
    ],
)
def test_what_workers_cannot_write_is_refused_with_the_remedy(
    df: DataFrame, options: dict[str, Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=problem):
        sp.aggregate(df, by="city", n=sp.count(), **options)
    assert names(tmp_path) == []


def test_columns_of_every_type_are_read_as_they_were(spark: SparkSession, tmp_path: Path):
    """Away from UTC, where a time without zone taken for one with it would be moved; a column without a type is refused."""
    noon = "TIMESTAMP_NTZ'2024-03-10 12:00:00'"
    texts = f"""
        1 AS x, 'süß' AS text, true AS flag, 7Y AS tiny, 12345678901234.5678BD AS money, DATE'2024-02-29' AS day,
        TIMESTAMP'2024-03-10 12:00:00' AS at, {noon} AS local, X'00FF' AS raw, INTERVAL '1 0:0:2' DAY TO SECOND AS lasted,
        array(named_struct('a', 1, 'at', {noon})) AS list, named_struct('name', 'n', 'local', {noon}) AS record,
        map('a', 0.5D, 'b', CAST(NULL AS DOUBLE)) AS pairs, {noon} AS time
    """
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = spark.sql(f"SELECT {texts}")
        cases: list[dict[str, Any]] = [{}, {"time": "time", "window": "1 hour"}]
        for options in cases:
            lazy = sp.skyline(rows, "x MIN", **options)
            answers = sp.skyline(rows, "x MIN", **options, output=tmp_path / f"out{len(options)}")
            assert answers.dtypes == lazy.dtypes
            assert answers.collect() == lazy.collect()
        with pytest.raises(ConfigError, match="column 'nothing' has no values of any type"):
            sp.skyline(rows.withColumn("nothing", sf.lit(None)), "x MIN", output=tmp_path / "void")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


SHORTHANDS: dict[str, Callable[..., DataFrame]] = {
    "skyline": lambda df, **options: sp.skyline(df, "x MIN, y MAX", **options),
    "top_k": lambda df, **options: sp.top_k(df, 2, "x", **options),
    "k_dominant": lambda df, **options: sp.k_dominant(df, 1, "x MIN, y MAX", **options),
    "top_delta": lambda df, **options: sp.top_delta(df, 2, "x MIN, y MAX", **options),
    "aggregate": lambda df, **options: sp.aggregate(df, by="city", n=sp.count(), **options),
}


@pytest.mark.parametrize("name", SHORTHANDS)
def test_each_function_of_a_query_takes_an_output(df: DataFrame, name: str, tmp_path: Path):
    ask, out = SHORTHANDS[name], tmp_path / "out"
    out.mkdir()
    pq.write_table(ROWS, out / "part-00000.parquet")  # what an earlier run has left
    answers, lazy = ask(df, **HOURS, output=out, if_exists="overwrite"), ask(df, **HOURS)
    assert rows_of(answers) == rows_of(lazy)
    assert answers.columns == lazy.columns
