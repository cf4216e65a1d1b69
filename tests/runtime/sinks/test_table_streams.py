"""Streams into tables, of open formats, of databases and of Spark, against runtime/local.py, which defines their answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.parameters import slow_but
from tests.runtime.database_places import DATABASES, database
from tests.runtime.driver import assert_killed
from tests.runtime.streams import NaiveWatermark, answers, late_rows, read_batches, write_batches
from tests.runtime.table_stream_driver import FORMATS, NAME, PLAN, STREAMS, Format, finish_at_once, job

import skypane as sp
from skypane.runtime import local

OTHER: Final = {"delta": "iceberg", "iceberg": "delta"}
SHORT: Final[dict[str, Any]] = {"time": "ts", "window": "10 seconds", "progress": sp.Watermark("1 second")}


def multiset(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(rows[name].to_pylist() for name in sorted(rows.schema.names)), strict=True))


@pytest.mark.parametrize("name", OTHER)
def test_tables_have_the_answers_and_the_rejected_rows_of_a_stream(spark: SparkSession, tmp_path: Path, name: str):
    """Over three starts, in one of which several workers answer the windows of a batch; late rows are in the other format."""
    form, other, folder = FORMATS[name], FORMATS[OTHER[name]], tmp_path / name
    tables, naive = late_rows(1, batches=5), NaiveWatermark(PLAN.windows.longest_pane)
    for table in tables:
        naive.take(table)
    late = other.sink(folder, "stream.late")
    write_batches(tmp_path / "in", tables[:3])
    finish_at_once([job(spark, folder, form, late=late)])
    write_batches(tmp_path / "in", tables[3:], first=3)
    finish_at_once([job(spark, folder, form, cut=True, late=late)])
    job(spark, folder, form, late=late).start(trigger="available now").drain()
    assert multiset(form.rows(folder, NAME)) == multiset(answers(PLAN, [*tables, local.Drain()]))
    rejected = other.rows(folder, "stream.late")
    assert naive.late
    assert sorted(rejected["id"].to_pylist()) == sorted(naive.late)
    assert set(rejected["reason"].to_pylist()) == {"late"}


CRASHES: Final = {
    ("before the ledger", False): True,
    ("before the ledger", True): False,  # it repeats the batch of the one before, which is there
    ("before the table", False): False,
    ("after the table", True): True,
}
"""Places and ways of answering, and whether the table has more rows after a kill there."""


@pytest.mark.slow
def test_a_stream_that_is_killed_around_its_commits_has_each_answer_once(spark: SparkSession, tmp_path: Path):
    """Four streams are killed in one process: of each format two, of which one has its windows answered by workers."""
    tables = late_rows(2, batches=3 + len(CRASHES))

    def jobs() -> list[sp.Job]:
        return [job(spark, tmp_path / name, form) for name, (form, _) in STREAMS.items()]

    def rows() -> dict[str, pa.Table]:
        return {name: form.rows(tmp_path / name, NAME) for name, (form, _) in STREAMS.items()}

    write_batches(tmp_path / "in", tables[:3])
    finish_at_once(jobs())
    for number, ((place, cut), grows) in enumerate(CRASHES.items(), 3):
        write_batches(tmp_path / "in", [tables[number]], first=number)
        (tmp_path / "crash.json").write_text(json.dumps({"place": place, "cut": cut}))
        before = rows()
        assert_killed("tests.runtime.table_stream_driver", tmp_path)
        grown = {name: found.num_rows > before[name].num_rows for name, found in rows().items()}
        assert grown == dict.fromkeys(STREAMS, grows), (place, cut)
    finish_at_once(jobs(), drain=True)
    wanted = multiset(answers(PLAN, [*tables, local.Drain()]))
    assert [name for name, found in rows().items() if multiset(found) != wanted] == []


Table = tuple[sp.Sink, Callable[[], list[tuple[Any, ...]]]]
"""A sink, and what reads city, n and version of its rows, window by window."""


def in_files(request: pytest.FixtureRequest, folder: Path) -> dict[str, Table]:
    def of(form: Format) -> Table:
        def rows() -> list[tuple[Any, ...]]:
            found = form.rows(folder, "shop.counts").sort_by([("window_start", "ascending"), ("city", "ascending")])
            return [(row["city"], row["n"], row["version"]) for row in found.to_pylist()]

        return form.sink(folder, "shop.counts"), rows

    return {name: of(form) for name, form in FORMATS.items()} | in_database("sqlite", request, folder)


def on_a_server(request: pytest.FixtureRequest, folder: Path) -> dict[str, Table]:
    return in_database("postgresql", request, folder)


def in_database(kind: str, request: pytest.FixtureRequest, folder: Path) -> dict[str, Table]:
    """Return a table without a key, and one with a key."""
    place = database(kind, request, folder)

    def of(table: str, key: str) -> Table:
        statement = f"SELECT city, n, version FROM {table} ORDER BY window_start, city"  # noqa: S608
        return place.sink(key, table), lambda: place.ask(statement)

    return {kind: of(f"{place.table}_1", ""), f"{kind}-key": of(f"{place.table}_2", "window_start,city")}


PLACES: Final = {"files": in_files, "server": on_a_server}


@pytest.mark.parametrize("where", slow_but(["files"], PLACES))
def test_the_tables_of_a_stream_that_amends_have_the_current_answers(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, where: str
):
    """A query for each; the second batch amends a window, in which a key disappears by `having`."""
    times = pa.array([0, 1_000_000, 20_000_000, 2_000_000, 3_000_000], pa.timestamp("us", "UTC"))
    sent = pa.table({"ts": times, "city": ["Oslo", "Rome", "Oslo", "Rome", "Bern"]})
    write_batches(tmp_path / "in", [sent.slice(0, 3), sent.slice(3, 2)])
    tables = PLACES[where](request, tmp_path)
    job = sp.streams(
        read_batches(spark, tmp_path / "in", sent.schema),
        dict.fromkeys(tables, sp.Aggregate("city", n=sp.count(), having="n < 2")),
        late=sp.Amend("1 minute"),
        output={name: sink for name, (sink, _) in tables.items()},
        checkpoint=tmp_path / "checkpoint",
        **SHORT,
    )
    finish_at_once([job], drain=True)
    current = [("Bern", 1, 1), ("Oslo", 1, 1), ("Oslo", 1, 0)]
    assert {name: rows() for name, (_, rows) in tables.items()} == dict.fromkeys(tables, current)


@pytest.mark.parametrize("kind", slow_but(["sqlite"], DATABASES))
def test_one_sink_of_two_streams_at_once_has_the_answers_of_both(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, kind: str
):
    """Both start before either has answered, and have batches of the same numbers; each is answered once."""
    place = database(kind, request, tmp_path)
    given, jobs, wanted = place.sink(), list[sp.Job](), list[str]()
    for city in ("Oslo", "Rome"):
        times = pa.array([0, 11_000_000, 22_000_000, 33_000_000], pa.timestamp("us", "UTC"))
        sent = pa.table({"ts": times, "city": [city] * 4})
        write_batches(tmp_path / city, [sent.slice(at, 1) for at in range(4)])
        wanted += [city] * 4
        rows, checkpoint = read_batches(spark, tmp_path / city, sent.schema), tmp_path / f"checkpoint of {city}"
        jobs.append(sp.stream(rows, sp.Aggregate("city", n=sp.count()), output=given, checkpoint=checkpoint, **SHORT))
    finish_at_once(jobs, drain=True)
    assert sorted(place.rows("city")) == wanted


@pytest.mark.parametrize("name", slow_but(["delta"], OTHER))
def test_a_continuous_skyline_keeps_its_front_in_a_table(spark: SparkSession, tmp_path: Path, name: str):
    """Its updates are in a table of the other format."""
    tables, form, other = late_rows(3, batches=3), FORMATS[name], FORMATS[OTHER[name]]
    write_batches(tmp_path / "in", tables)
    rows = read_batches(spark, tmp_path / "in", tables[0].schema)
    sinks: dict[str, Any] = {"output": other.sink(tmp_path, "shop.updates"), "front": form.sink(tmp_path, "shop.front")}
    checkpoint, query = tmp_path / "checkpoint", "price MIN, rating MAX"
    given: dict[str, Any] = {"window": "40 seconds", "progress": sp.Watermark("20 seconds"), "checkpoint": checkpoint}
    finish_at_once([sp.continuous_skyline(rows, query, time="ts", **given, **sinks)])
    updates, front = other.rows(tmp_path, "shop.updates"), form.rows(tmp_path, "shop.front")
    added: Counter[int] = Counter()
    for row in updates.to_pylist():
        added[row["id"]] += 1 if row["action"] == "ADD" else -1
    assert sorted(added.elements()) == sorted(front["id"].to_pylist())
    assert front.num_rows
