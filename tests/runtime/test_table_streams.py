"""Streams into tables of open formats, Delta and Iceberg, against runtime/local.py, which defines their answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.driver import assert_killed
from tests.runtime.streams import NaiveKSlack, answers, finish, late_rows, read_batches, write_batches
from tests.runtime.table_stream_driver import FORMATS, NAME, PLACES, PLAN, Format, job

import skypane as sp
from skypane.runtime import local


@pytest.fixture(params=FORMATS)
def name(request: pytest.FixtureRequest) -> str:
    """The name of a format."""
    return str(request.param)


@pytest.fixture
def form(name: str) -> Format:
    return FORMATS[name]


def multiset(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(rows[name].to_pylist() for name in sorted(rows.schema.names)), strict=True))


@pytest.mark.parametrize("cut", [False, True])
def test_a_table_has_the_answers_of_a_stream(spark: SparkSession, tmp_path: Path, form: Format, cut: bool):
    """Also where several workers answer the windows of a batch."""
    tables = late_rows(1, batches=5)
    write_batches(tmp_path / "in", tables[:3])
    finish(job(spark, tmp_path, form, cut=cut))
    write_batches(tmp_path / "in", tables[3:], first=3)
    finish(job(spark, tmp_path, form, cut=cut))
    job(spark, tmp_path, form).start(trigger="available now").drain()
    assert multiset(form.rows(tmp_path, NAME)) == multiset(answers(PLAN, [*tables, local.Drain()]))


@pytest.mark.slow
def test_a_stream_that_is_killed_around_its_commits_has_each_answer_once(
    spark: SparkSession, tmp_path: Path, form: Format, name: str
):
    tables = late_rows(2, batches=3 + 2 * len(PLACES))
    write_batches(tmp_path / "in", tables[:3])
    finish(job(spark, tmp_path, form))
    crashes = [(place, cut) for place in PLACES for cut in (False, True)]
    grows = (True, False, False, False, True, True)  # the second repeats the batch of the first, which is there
    for number, (place, cut) in enumerate(crashes, 3):
        write_batches(tmp_path / "in", [tables[number]], first=number)
        (tmp_path / "crash.json").write_text(json.dumps({"format": name, "place": place, "cut": cut}))
        before = form.rows(tmp_path, NAME).num_rows
        assert_killed("tests.runtime.table_stream_driver", tmp_path)
        assert (form.rows(tmp_path, NAME).num_rows > before) == grows[number - 3], (place, cut)
    handle = job(spark, tmp_path, form).start(trigger="available now")
    assert handle.await_termination(300), handle.status
    handle.drain()
    assert multiset(form.rows(tmp_path, NAME)) == multiset(answers(PLAN, [*tables, local.Drain()]))


def test_the_table_of_a_stream_that_amends_has_the_current_answers(spark: SparkSession, tmp_path: Path, form: Format):
    """The second batch amends a window, in which a key disappears by `having`."""
    times = pa.array([0, 1_000_000, 20_000_000, 2_000_000, 3_000_000], pa.timestamp("us", "UTC"))
    sent = pa.table({"ts": times, "city": ["Oslo", "Rome", "Oslo", "Rome", "Bern"]})
    write_batches(tmp_path / "in", [sent.slice(0, 3), sent.slice(3, 2)])
    handle = sp.stream(
        read_batches(spark, tmp_path / "in", sent.schema),
        sp.Aggregate("city", n=sp.count(), having="n < 2"),
        time="ts",
        window="10 seconds",
        progress=sp.Watermark("1 second"),
        late=sp.Amend("1 minute"),
        output=form.sink(tmp_path, "shop.counts"),
        checkpoint=tmp_path / "checkpoint",
    ).start(trigger="available now")
    assert handle.await_termination(300), handle.status
    handle.drain()
    found = form.rows(tmp_path, "shop.counts").sort_by([("window_start", "ascending"), ("city", "ascending")])
    assert found.select(["city", "n", "version"]).to_pylist() == [
        {"city": "Bern", "n": 1, "version": 1},
        {"city": "Oslo", "n": 1, "version": 1},
        {"city": "Oslo", "n": 1, "version": 0},
    ]


def test_rejected_rows_are_in_a_separate_table(spark: SparkSession, tmp_path: Path, form: Format):
    tables = late_rows(4, batches=5)
    write_batches(tmp_path / "in", tables)
    naive = NaiveKSlack(PLAN.windows.longest_pane)
    for table in tables:
        naive.take(table)
    finish(
        sp.stream(
            read_batches(spark, tmp_path / "in", tables[0].schema),
            PLAN.query,
            time="ts",
            window=PLAN.windows,
            progress=PLAN.progress,
            output=tmp_path / "out",
            late=form.sink(tmp_path, "stream.late"),
            checkpoint=tmp_path / "checkpoint",
        )
    )
    late = form.rows(tmp_path, "stream.late")
    assert naive.late
    assert sorted(late["id"].to_pylist()) == sorted(naive.late)
    assert set(late["reason"].to_pylist()) == {"late"}


def test_a_continuous_skyline_keeps_its_front_in_a_table(spark: SparkSession, tmp_path: Path, form: Format):
    tables = late_rows(3, batches=3)
    write_batches(tmp_path / "in", tables)
    handle = sp.continuous_skyline(
        read_batches(spark, tmp_path / "in", tables[0].schema),
        "price MIN, rating MAX",
        time="ts",
        window="40 seconds",
        output=form.sink(tmp_path, "shop.updates"),
        front=form.sink(tmp_path, "shop.front"),
        checkpoint=tmp_path / "checkpoint",
    ).start(trigger="available now")
    assert handle.await_termination(300), handle.status
    updates, front = form.rows(tmp_path, "shop.updates"), form.rows(tmp_path, "shop.front")
    added: Counter[int] = Counter()
    for row in updates.to_pylist():
        added[row["id"]] += 1 if row["action"] == "ADD" else -1
    assert sorted(added.elements()) == sorted(front["id"].to_pylist())
    assert front.num_rows
