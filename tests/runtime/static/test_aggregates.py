"""Aggregates on Spark against Spark's own groupBy(window(...), keys).agg(...), row by row."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.runtime.streams import answers, drained, late_rows, parquet_rows, read_batches, write_batches

import skypane as sp
from skypane.control.window_division import fixed_division
from skypane.operators.open_panes import OpenPanes
from skypane.plan import Plan
from skypane.runtime import local
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import wlq
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReference
from skypane.runtime.spark.engine.plq import LiftReports, LiftStage, TaskReport
from skypane.windows import Windows

INF, NAN = float("inf"), float("nan")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)

#: a function of ours, and Spark's; each row has an `at` and an `i` of its own, so that orders have no ties
PAIRS: dict[str, tuple[Any, str]] = {
    "n": (sp.count(), "count(*)"),
    "values": (sp.count("f"), "count(f)"),
    "big": (sp.count_if("f > 10 or word == 'b'"), "count_if(f > 10 OR word = 'b')"),
    "total": (sp.sum("f"), "sum(f)"),
    "part": (sp.sum("small", where="word != 'a'"), "sum(small) FILTER (WHERE word != 'a')"),
    "whole": (sp.sum("i"), "sum(i)"),
    "short": (sp.sum("short"), "sum(short)"),
    "mean": (sp.avg("f"), "avg(f)"),
    "mean_i": (sp.avg("i"), "avg(i)"),
    "low": (sp.min("f"), "min(f)"),
    "high": (sp.max("f"), "max(f)"),
    "low_i": (sp.min("short"), "min(short)"),
    "word": (sp.max("word"), "max(word)"),
    "newest": (sp.max("at"), "max(at)"),
    "day": (sp.min("day"), "min(day)"),
    "any": (sp.max("flag"), "max(flag)"),
    "variance": (sp.variance("f"), "var_samp(f)"),
    "var_pop": (sp.var_pop("short"), "var_pop(short)"),
    "stddev": (sp.stddev("small"), "stddev_samp(small)"),
    "stddev_pop": (sp.stddev_pop("f"), "stddev_pop(f)"),
    "first": (sp.first("f"), "min_by(f, at) FILTER (WHERE f IS NOT NULL)"),
    "last": (sp.last("word"), "max_by(word, at) FILTER (WHERE word IS NOT NULL)"),
    "at_most": (sp.max_by("f", "i"), "max_by(f, i)"),
    "at_least": (sp.min_by("word", "i"), "min_by(word, i)"),
    "different": (sp.count_distinct("f"), "count(DISTINCT f)"),
    "every_row": (sp.count("*"), "count(*)"),
    "mean_short": (sp.mean("short"), "mean(short)"),
    "all_flags": (sp.bool_and("flag"), "bool_and(flag)"),
    "any_flag": (sp.bool_or("flag", where="short > 0"), "bool_or(flag) FILTER (WHERE short > 0)"),
    "set_of_f": (sp.collect_set("f"), "sort_array(collect_set(f))"),
    "set_of_words": (sp.collect_set("word"), "sort_array(collect_set(word))"),
    "mode_word": (sp.mode("word"), "mode(word, true)"),
    "mode_short": (sp.mode("short"), "mode(short, true)"),
    "mode_small": (sp.mode("small", where="flag"), "mode(small, true) FILTER (WHERE flag)"),
    "mode_day": (sp.mode("day"), "mode(day, true)"),
    "median": (sp.median("f"), "median(f)"),
    "median_i": (sp.median("i"), "median(i)"),
    "parts": (sp.percentile("f", [0.0, 0.3, 0.77, 1.0]), "percentile(f, array(0.0D, 0.3D, 0.77D, 1.0D))"),
    "part_of_small": (sp.percentile("small", 0.9), "percentile(small, 0.9D)"),
    # Without NaN, whose place Spark's percentile_approx does not fix.
    "taken": (sp.percentile_approx("i", 0.25), "percentile_approx(i, 0.25D)"),
    "taken_all": (
        sp.percentile_approx("f", [0.0, 0.1, 0.5, 1.0], 20_000, where="f < 1e9"),
        "percentile_approx(f, array(0.0D, 0.1D, 0.5D, 1.0D), 20000) FILTER (WHERE f < 1e9)",
    ),
    "taken_day": (sp.percentile_approx("day", 0.5), "percentile_approx(day, 0.5D)"),
    "taken_at": (sp.percentile_approx("at", 0.9), "percentile_approx(at, 0.9D)"),
    "words": (sp.collect_list("word", order="word"), "sort_array(collect_list(word))"),
}


@st.composite
def rows(draw: st.DrawFn) -> pa.Table:
    """A few hundred rows over some minutes; the seed is Hypothesis', as is how many values are special or null."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(150, 300))
    special, null = draw(st.sampled_from([0.0, 0.05])), draw(st.sampled_from([0.1, 0.5]))
    f = rng.normal(50, 100, n)
    f[rng.random(n) < special] = rng.choice([INF, -INF, NAN, -0.0])
    seconds = rng.choice(6_000, n, replace=False) * 50

    def column(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array(values, mask=rng.random(n) < null).cast(kind)

    return pa.table({
        "at": pa.array([NEW_YEAR + timedelta(milliseconds=int(second)) for second in seconds]),
        "key": column(rng.choice(["a", "b", ""], n), pa.string()),
        "grade": column(rng.choice([0.0, -0.0, NAN], n), pa.float64()),
        "f": column(f, pa.float64()),
        "small": column(rng.integers(-9, 9, n) / 4, pa.float32()),
        "i": pa.array(rng.permutation(n) * 10**12),
        "short": column(rng.integers(-9, 9, n), pa.int16()),
        "word": column(rng.choice(["a", "b", "cc"], n), pa.string()),
        "flag": column(rng.random(n) < 0.5, pa.bool_()),
        "day": column(rng.integers(20_000, 20_005, n).astype(np.int32), pa.date32()),
    })  # fmt: skip


def theirs(frame: DataFrame, by: list[str], window: str, slide: str) -> DataFrame:
    """Spark's own answer."""
    grouped = frame.groupBy(sf.window("at", window, slide).alias("w"), *by)
    named = grouped.agg(*(sf.expr(text).alias(name) for name, (_, text) in PAIRS.items()))
    return named.select("w.start", "w.end", *by, *PAIRS)


def in_order(found: Iterable[Any], keys: int) -> list[tuple[Any, ...]]:
    return sorted(
        map(tuple, found),
        key=lambda row: repr([value + 0.0 if isinstance(value, float) else value for value in row[:keys]]),
    )


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@settings(max_examples=1, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    table=rows(),
    shape=st.sampled_from([("60 seconds", "7 seconds"), ("2 minutes", "10 seconds"), ("30 seconds", "30 seconds")]),
)
def test_a_batch_answers_as_sparks_own_windows(table: pa.Table, shape: tuple[str, str], spark: SparkSession):
    frame, by = spark.createDataFrame(table), ["key", "grade"]
    functions = {name: function for name, (function, _) in PAIRS.items()}
    ours = sp.aggregate(frame, by=by, time="at", window=shape[0], slide=shape[1], **functions)
    wanted = theirs(frame, by, *shape)
    assert [kind for _, kind in ours.dtypes] == [kind for _, kind in wanted.dtypes]
    pairs = list(zip(in_order(ours.collect(), 4), in_order(wanted.collect(), 4), strict=True))
    assert pairs
    for found, row in pairs:
        wrong = [(name, a, b) for name, a, b in zip(ours.columns, found, row, strict=True) if not same(a, b)]
        assert not wrong, found[:4]


def test_a_stream_with_late_rows_answers_as_spark_does_over_the_others(spark: SparkSession, tmp_path: Path):
    """Also as the oracle, to the bit: a sum of floating-point numbers is one of them, whatever came first."""
    batches = [
        batch.append_column("f", pa.array(np.random.default_rng(number).normal(size=batch.num_rows)))
        for number, batch in enumerate(late_rows(3, start=1_700_000_000_000_000))
    ]
    query = sp.Aggregate(
        "sensor",
        time="ts",
        n=sp.count(),
        total=sp.sum("f"),
        mean=sp.avg("price"),
        low=sp.min("f"),
        spread=sp.variance("f"),
        last=sp.last("id", order="sent"),
        heavy=sp.sum("weight", where="rating > 2"),
    )
    write_batches(tmp_path / "in", batches, files=2)
    job = sp.stream(
        read_batches(spark, tmp_path / "in", batches[0].schema, files=2),
        query,
        time="ts",
        window="60 seconds",
        slide="7 seconds",
        progress=sp.Watermark("15 seconds"),
        checkpoint=tmp_path / "checkpoint",
        output=tmp_path / "out",
        late=tmp_path / "late",
    )
    drained(job)
    out, late = parquet_rows(tmp_path / "out"), parquet_rows(tmp_path / "late")
    assert late.num_rows

    plan = Plan(query, Windows.of("60 seconds", "7 seconds"), "ts", sp.Watermark("15 seconds"))
    oracle = answers(plan, [*batches, local.Drain()])
    assert sorted(map(repr, out.to_pylist())) == sorted(map(repr, oracle.to_pylist()))

    kept = spark.createDataFrame(pa.concat_tables(batches)).where(~sf.col("id").isin(late["id"].to_pylist()))
    grouped = kept.groupBy(sf.window("ts", "60 seconds", "7 seconds").alias("w"), "sensor").agg(
        sf.count("*"),
        sf.sum("f"),
        sf.avg("price"),
        sf.min("f"),
        sf.var_samp("f"),
        sf.count("id"),
        sf.sum(sf.when(sf.col("rating") > 2, sf.col("weight"))),
    )
    wanted = {(row[0].start.timestamp(), row[1]): row[2:] for row in grouped.collect()}
    found = {(row["window_start"].timestamp(), row["sensor"]): row for row in out.to_pylist()}
    # A window that was answered before a row came late for it has no other rows: those are all the windows there are.
    assert found.keys() == wanted.keys()
    for key, (n, total, mean, low, spread, _, heavy) in wanted.items():
        row = found[key]
        ours = (row["n"], row["total"], row["mean"], row["low"], row["spread"], row["heavy"])
        assert all(map(same, ours, (n, total, mean, low, spread, heavy))), (key, row)


def test_workers_share_a_single_window_of_many_keys_and_write_its_answers(spark: SparkSession, tmp_path: Path):
    """What place_windows decides for such a window, where a job would take longer than so few rows are worth."""
    rows = pa.table(
        {
            "at": pa.array(np.arange(20_000) * 1_000, pa.timestamp("us", "UTC")),
            "key": [f"key {number % 5_000}" for number in range(20_000)],
            "x": np.arange(20_000) / 7,
        }
    )
    plan = Plan(sp.Aggregate("key", n=sp.count(), total=sp.sum("x")), Windows.of("20 seconds"), "at")
    folder = DocumentStore.at(str(tmp_path))
    for name in (PARTIALS, "answers"):
        folder.child(name).make()
    lift = LiftStage(plan.query, plan.gate, folder, 0)
    reports = [report for part in (0, 1) for report in lift(rows.slice(part * 10_000, 10_000).to_batches())]
    level = LiftReports(tuple(TaskReport.from_json(report.column(0)[0].as_py()) for report in reports))
    panes = OpenPanes[PartialReference].empty(plan.windows).add((pane.count.pane, pane.ref) for pane in level.panes)
    schema, query = plan.validate(rows.schema), plan.window_query(rows.schema)
    tasks = panes.all_windows()
    here, _ = wlq.in_driver(query.worker(), folder, tasks, schema)
    division = fixed_division(wlq.sizes_of(tasks), 1, 3)
    there, work = wlq.on_workers(
        spark, wlq.WindowStage(query, folder, folder.child("answers"), "0", tuple(tasks), schema, division)
    )
    assert len(tasks) == 1
    assert [run.windows for run in work.runs] == [1, 1, 1]
    assert (there.windows, there.row_count) == (here.windows, 5_000)
    assert len(there.files) == 3
    assert not there.tables
    assert sorted(map(repr, there.table().to_pylist())) == sorted(map(repr, here.table().to_pylist()))


def test_all_rows_at_once_have_one_answer_per_key(spark: SparkSession):
    frame = spark.range(0, 1_000, 1, 3).selectExpr("id % 3 AS key", "id / 4 AS x", "id")
    found = sp.aggregate(frame, by="key", time="id", total=sp.sum("x"), last=sp.last("x")).collect()
    wanted = frame.groupBy("key").agg(sf.sum("x"), sf.max_by("x", "id")).collect()
    assert sorted(map(tuple, found)) == sorted(map(tuple, wanted))


def test_a_sum_that_does_not_fit_fails_as_sparks_does(spark: SparkSession):
    frame = spark.range(4).selectExpr("9223372036854775807 AS x")
    with pytest.raises(PythonException, match="a sum of column 'x' does not fit into 64 bits: cast it to double first"):
        sp.aggregate(frame, total=sp.sum("x")).collect()
