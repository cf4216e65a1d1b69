"""Spark reads folders of answers: stays become the rows of windows, of versions the last one is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.checkout import ROOT
from tests.engine import test_early
from tests.engine.reading import read_by_spark
from tests.engine.test_amended import QUERIES, expected, job_of
from tests.engine.test_stays import bag
from tests.runtime.streams import finish, late_rows, write_batches

import skypane as sp
from skypane.operators.stay_columns import expanded, stay_fields
from skypane.reporting import snapshot
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.testing import Session

START = datetime(2026, 1, 1, tzinfo=UTC)


def hours(*at: int) -> pa.Array:
    return pa.array([START + timedelta(hours=hour) for hour in at], pa.timestamp("us", "UTC"))


def values_by_hour(rows: pa.Table) -> list[tuple[float, int]]:
    starts = [(start - START) / timedelta(hours=1) for start in rows["window_start"].to_pylist()]
    return sorted(zip(starts, rows["x"].to_pylist(), strict=True))


def test_stays_beside_versions_of_windows_are_read_as_the_last_versions(spark: SparkSession, tmp_path: Path):
    """A job that amended its answers goes on without Amend, with stays."""
    versions = {"version": pa.array([0, 1, 1], pa.int32()), "empty": [False, False, True], "x": [7, 8, None]}
    pq.write_table(
        pa.table({"window_start": hours(0, 0, 1), "window_end": hours(3, 3, 4), **versions}),
        tmp_path / "part-0.parquet",
    )
    stays = {"window_from": hours(4), "window_to": hours(6), "window_end": hours(9)}
    pq.write_table(
        pa.table({**stays, "window_count": pa.array([3], pa.int32()), "x": [9]}), tmp_path / "part-1.parquet"
    )
    wanted = [(0, 8), (4, 9), (5, 9), (6, 9)]
    found = sp.read_answers(spark, tmp_path).toArrow()
    assert set(found.column_names) - {"version"} == {"window_start", "window_end", "x"}
    assert values_by_hour(found) == wanted
    reported = snapshot.answers(tmp_path)
    assert reported is not None
    assert values_by_hour(reported) == wanted


def test_rows_of_windows_with_the_columns_of_stays_are_not_expanded(spark: SparkSession):
    """They are of a query over the rows of a folder of stays."""
    own = {"window_from": hours(0, 2), "window_to": hours(1, 9), "window_count": pa.array([2, 8], pa.int32())}
    rows = pa.table({"window_start": hours(4, 5), "window_end": hours(5, 6), **own, "x": [1, 2]})
    assert values_by_hour(sp.current_answers(spark.createDataFrame(rows)).toArrow()) == [(4, 1), (5, 2)]


def stays_of(spans: list[tuple[int, int, int]], slide: timedelta, zone: str | None) -> pa.Table:
    """Return stays of windows of two slides and a half, from a start in hours, of some windows, with a value."""
    begin = datetime(2026, 3, 27)  # noqa: DTZ001 - two days before clocks change in Europe
    first = [begin + timedelta(hours=hours) for hours, _, _ in spans]
    last = [start + (count - 1) * slide for start, (_, count, _) in zip(first, spans, strict=True)]
    fields = [*stay_fields(zone), pa.field("x", pa.int64())]
    columns = [first, last, [start + 2.5 * slide for start in last], *([span[at] for span in spans] for at in (1, 2))]
    times = [pa.array(column, pa.timestamp("us")).cast(pa.int64()).cast(fields[0].type) for column in columns[:3]]
    numbers = [pa.array(column, field.type) for column, field in zip(columns[3:], fields[3:], strict=True)]
    return pa.Table.from_arrays([*times, *numbers], schema=pa.schema(fields))


def in_micros(rows: pa.Table) -> pa.Table:
    """Return rows whose first two columns are whole numbers in place of times, which no zone changes."""
    return rows.set_column(0, "s", rows[0].cast(pa.int64())).set_column(1, "e", rows[1].cast(pa.int64()))


_, VIEW, _ = (ROOT / "docs" / "stays.md").read_text(encoding="utf-8").split('"""')
"""The statement of the page by which plain Spark expands stays."""
SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(0, 3)), min_size=1, max_size=6)
SLIDES = st.sampled_from([timedelta(microseconds=7), timedelta(hours=1), timedelta(days=1, hours=3)])


@pytest.mark.parametrize("zone", ["UTC", None])
@settings(max_examples=8)
@given(spans=SPANS, slide=SLIDES)
def test_spark_expands_stays_as_the_definition_in_a_zone_whose_clocks_change(
    zone: str | None, spark: SparkSession, spans: list[tuple[int, int, int]], slide: timedelta
):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Zurich")
    try:
        stays = stays_of(spans, slide, zone)
        wanted = bag(in_micros(expanded(stays)))
        frame = spark.createDataFrame(stays, spark_schema(stays.schema))
        assert bag(in_micros(sp.current_answers(frame).toArrow())) == wanted
        if zone:
            frame.createOrReplaceTempView("stays")
            assert bag(in_micros(spark.sql(VIEW).toArrow())) == wanted
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


@pytest.mark.parametrize("changes", [False, True])
def test_windows_that_are_open_are_read_in_their_early_version(changes: bool, spark: SparkSession, tmp_path: Path):
    batches, query = late_rows(31, batches=8, rows=90), QUERIES["aggregate that loses its rows"]
    write_batches(tmp_path / "in", batches)
    options = {"late": sp.Amend("12 seconds", changes=changes), "early": "5 seconds"}
    finish(job_of(Session(), tmp_path, query, batches[0].schema, **options))
    found = read_by_spark(spark, tmp_path / "out")
    assert found == test_early.last(expected(test_early.early_plan(query), batches))
    assert {early for early, _ in found.values()} == {True, False}
