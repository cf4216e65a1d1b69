"""Spark's stays against runtime/local.py: expanded, they are the answers of the windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.checkout import ROOT
from tests.runtime.streams import SECOND, answers, finish, late_rows, parquet_rows, read_batches, write_batches
from tests.runtime.test_amended import QUERIES
from tests.runtime.test_query_changes import killed
from tests.runtime.test_window_division import IN_THREADS, ON_SPARK, AnyDivision

import skypane as sp
from skypane.control.costs import Costs
from skypane.operators.query import Query
from skypane.operators.stay_columns import expanded, stay_fields
from skypane.plan import Plan
from skypane.reporting import snapshot
from skypane.runtime import local
from skypane.runtime.spark.engine import window_program
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.windows import Windows

WINDOWS = Windows(40 * SECOND, 5 * SECOND)
IN_DRIVER = Costs(job=1e3, threads=1e3)


def job_of(spark: SparkSession, folder: Path, query: Query, schema: pa.Schema, **options: Any) -> sp.Job:
    own: dict[str, Any] = {
        "time": "ts",
        "window": WINDOWS,
        "progress": sp.KSlack(),
        "answers": "stays",
        "checkpoint": folder / "checkpoint",
        "output": folder / "out",
        "workers": sp.WorkerOptions(wlq_workers=3),
    }
    costs = options.pop("costs", IN_DRIVER)
    job = sp.stream(read_batches(spark, folder / "in", schema), query, **own | options)
    return replace(job, settings=replace(job.settings, costs=costs))


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


def plan_of(job: sp.Job) -> Plan:
    assert isinstance(job.settings.plan, Plan)
    return job.settings.plan


@pytest.mark.core
@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_writes_the_stays_of_its_answers(name: str, spark: SparkSession, tmp_path: Path):
    batches = late_rows(41, batches=6, rows=60)
    write_batches(tmp_path / "in", batches)
    job = job_of(spark, tmp_path, QUERIES[name], batches[0].schema)
    seen = finish(job)
    written, wanted = parquet_rows(tmp_path / "out"), answers(plan_of(job), batches)
    assert bag(expanded(written)) == bag(wanted.select(expanded(written).column_names))
    assert bag(sp.read_answers(spark, tmp_path / "out").toArrow().select(wanted.column_names)) == bag(wanted)
    outcomes = [*local.run(plan_of(job), batches)]
    assert [(m.windows, m.window_rows) for m in seen] == [
        (len(one.answers), sum(answer.rows.num_rows for answer in one.answers)) for one in outcomes
    ]
    assert bag(written) == sum((bag(table) for one in outcomes for table in one.stays), Counter())


@pytest.mark.parametrize("name", ["skyline", "top-k", "aggregate"])
def test_windows_may_be_divided_otherwise_in_every_batch_and_over_a_restart(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    batches = late_rows(17, batches=6, rows=60)
    monkeypatch.setattr(window_program, "WindowDivision", AnyDivision)
    seen: list[sp.BatchMetrics] = []
    for first, costs in ((0, ON_SPARK), (3, IN_THREADS)):
        write_batches(tmp_path / "in", batches[first : first + 3], first=first)
        job = job_of(spark, tmp_path, QUERIES[name], batches[0].schema, costs=costs)
        seen += finish(job)
    assert "spark" in {metrics.wlq_where for metrics in seen}
    wanted = answers(plan_of(job), batches)
    assert bag(expanded(parquet_rows(tmp_path / "out")).select(wanted.column_names)) == bag(wanted)


def test_the_form_may_change_between_two_starts(spark: SparkSession, tmp_path: Path):
    batches = late_rows(23, batches=6, rows=40)
    for first, form in ((0, "windows"), (2, "stays"), (4, "windows")):
        write_batches(tmp_path / "in", batches[first : first + 2], first=first)
        job = job_of(spark, tmp_path, QUERIES["skyline"], batches[0].schema, answers=form)
        assert not job.changes().refused
        finish(job)
    wanted = answers(plan_of(job), batches)
    assert bag(sp.read_answers(spark, tmp_path / "out").toArrow().select(wanted.column_names)) == bag(wanted)


@pytest.mark.parametrize(("first", "second"), [("windows", "stays"), ("stays", "windows")])
def test_the_form_may_change_after_a_kill(
    first: str, second: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A batch is delivered in one form and not committed; the next start delivers it in the other, and so a drain."""
    batches = late_rows(23, batches=6, rows=40)
    write_batches(tmp_path / "in", batches[:3])
    finish(job_of(spark, tmp_path, QUERIES["skyline"], batches[0].schema, answers=first))
    write_batches(tmp_path / "in", batches[3:], first=3)
    killed(
        "before the commit", job_of(spark, tmp_path, QUERIES["skyline"], batches[0].schema, answers=first), monkeypatch
    )
    job = job_of(spark, tmp_path, QUERIES["skyline"], batches[0].schema, answers=second)
    finish(job)
    wanted = answers(plan_of(job), batches)
    assert bag(sp.read_answers(spark, tmp_path / "out").toArrow().select(wanted.column_names)) == bag(wanted)
    handle = job.start(trigger="available now")
    assert handle.await_termination(600)
    with monkeypatch.context() as once:
        once.setattr(Ledger, "commit", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            handle.drain()
    finish(job_of(spark, tmp_path, QUERIES["skyline"], batches[0].schema, answers=first))  # finishes the drain
    wanted = answers(plan_of(job), [*batches, local.Drain()])
    assert bag(sp.read_answers(spark, tmp_path / "out").toArrow().select(wanted.column_names)) == bag(wanted)


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


def test_several_queries_write_stays(spark: SparkSession, tmp_path: Path):
    batches = late_rows(29, batches=5, rows=40)
    write_batches(tmp_path / "in", batches)
    job = sp.streams(
        read_batches(spark, tmp_path / "in", batches[0].schema),
        {"best": QUERIES["skyline"], "load": QUERIES["aggregate"]},
        time="ts",
        window=WINDOWS,
        progress=sp.KSlack(),
        answers="stays",
        checkpoint=tmp_path / "checkpoint",
        output=tmp_path / "out",
    )
    finish(job)
    for name, query in (("best", "skyline"), ("load", "aggregate")):
        wanted = answers(Plan(QUERIES[query], WINDOWS, "ts", sp.KSlack()), batches)
        found = expanded(parquet_rows(tmp_path / "out" / name))
        assert bag(found.select(wanted.column_names)) == bag(wanted)


def stays_of(spans: list[tuple[int, int, int]], slide: timedelta, zone: str | None) -> pa.Table:
    """Return stays of windows of two slides and a half, from a start in hours, of some windows, with a value."""
    begin = datetime(2026, 3, 27)  # noqa: DTZ001 - two days before clocks change in Europe
    first = [begin + timedelta(hours=hours) for hours, _, _ in spans]
    last = [start + (count - 1) * slide for start, (_, count, _) in zip(first, spans, strict=True)]
    fields = [*stay_fields(zone), pa.field("x", pa.int64())]
    columns = [first, last, [start + 2.5 * slide for start in last], *([span[at] for span in spans] for at in (1, 2))]
    arrays = []
    for field, column in zip(fields, columns, strict=True):
        kind = pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type
        arrays.append(
            pa.array(column, kind).cast(pa.int64()).cast(field.type)
            if zone and kind != field.type
            else pa.array(column, kind)
        )
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


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
        wanted = expanded(stays)
        frame = spark.createDataFrame(stays, spark_schema(stays.schema))
        found = sp.current_answers(frame).toArrow()
        micros = [
            table.set_column(0, "s", table[0].cast(pa.int64())).set_column(1, "e", table[1].cast(pa.int64()))
            for table in (wanted, found)
        ]
        assert bag(micros[0]) == bag(micros[1])
        if zone:
            frame.createOrReplaceTempView("stays")
            shown = spark.sql(VIEW).toArrow()
            assert bag(
                shown.set_column(0, "s", shown[0].cast(pa.int64())).set_column(1, "e", shown[1].cast(pa.int64()))
            ) == bag(micros[0])
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def _view() -> str:
    """Return the statement of the page by which plain Spark expands stays."""
    text = (ROOT / "docs" / "stays.md").read_text(encoding="utf-8")
    _, statement, _ = text.split('"""')
    return statement


VIEW = _view()


def more(options: Mapping[str, Any]) -> dict[str, Any]:
    return {"time": "ts", "window": WINDOWS, "output": sp.Memory(), "checkpoint": "nowhere"} | dict(options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"late": sp.Amend("1 day")}, "Amend"),
        ({"early": "10 seconds"}, "early"),
        ({"output": sp.Directory("out", "csv")}, "got format 'csv'"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(
    options: Mapping[str, Any], named: str, spark: SparkSession, tmp_path: Path
):
    schema = late_rows(1, batches=1)[0].schema
    with pytest.raises(sp.ConfigError, match=f'answers="stays".*{named}'):
        sp.stream(read_batches(spark, tmp_path, schema), QUERIES["skyline"], answers="stays", **more(options))
