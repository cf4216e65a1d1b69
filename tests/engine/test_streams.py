"""sp.streams: several queries over one stream answer, drop and count as each would alone, and all commit together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.engine import jobs
from tests.runtime.driver import SCHEMA
from tests.runtime.streams import (
    SECOND,
    AnySession,
    ended,
    expected,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.operators.entry.reject_reasons import LATE, REASON
from skypane.operators.entry.shared_rejects import QUERIES
from skypane.plan import Plan
from skypane.runtime import local
from skypane.shared_plan import SharedPlan
from skypane.testing import Session
from skypane.types import Length
from skypane.windows import Windows

WINDOWS: dict[str, Windows] = {
    "best": Windows(50 * SECOND, 20 * SECOND),
    "first": Windows(30 * SECOND, 30 * SECOND),
    "load": Windows(40 * SECOND, 10 * SECOND, 3 * SECOND),
    "sums": Windows(7 * SECOND, 5 * SECOND),
}
ASKED: dict[str, Any] = {
    "best": sp.Skyline("price MIN, rating MAX", by="sensor"),
    "first": sp.TopK(3, "rating - price"),
    "load": sp.Aggregate("sensor", n=sp.count(), total=sp.sum("weight")),
    "sums": sp.Aggregate(required="price", low=sp.min("price"), last=sp.max("ts")),
}


def plan_of(name: str) -> Plan:
    return Plan(ASKED[name], WINDOWS[name], "ts", sp.Watermark("20 seconds"), "sensor")


def batches(seed: int) -> list[pa.Table]:
    """Late rows, some with a null in the time or in the price, and one that is an hour ahead."""
    found = []
    for number, table in enumerate(late_rows(seed, batches=8)):
        times, prices = table["ts"].to_pylist(), table["price"].to_pylist()
        times[number], prices[number + 3] = None, None
        if number == 3:
            times[30] = times[31].replace(year=2031)
        columns = {"ts": pa.array(times, table.schema.field("ts").type), "price": pa.array(prices, pa.float64())}
        found.append(pa.table([columns.get(name, table[name]) for name in table.column_names], schema=table.schema))
    return found


def job_of(session: AnySession, folder: Path, asked: Any = ASKED, **options: Any) -> sp.Job:
    own: dict[str, Any] = {"window": WINDOWS, "source": "sensor", "late": folder / "late"}
    return jobs.job_of(session, folder, asked, SCHEMA, **own | options)


def other_job_of(session: Session, folder: Path, asked: Any, **options: Any) -> sp.Job:
    """Return a job without a late sink, whose windows of ten seconds are those of all its queries."""
    return jobs.job_of(session, folder, asked, SCHEMA, **{"window": "10 s"} | options)


def assert_each_as_alone(folder: Path, tables: list[pa.Table], *, drain: bool = False) -> None:
    for name in ASKED:
        assert windows_of(parquet_rows(folder / "out" / name)) == as_alone(name, tables, drain=drain), name


def as_alone(name: str, tables: list[pa.Table], *, drain: bool = False) -> list[Any]:
    plan = plan_of(name)
    read = [table.select(plan.reads(table.schema)) for table in tables]
    return expected(plan, [*read, local.Drain()] if drain else read)


def test_each_query_answers_as_alone(session: Session, tmp_path: Path):
    tables = batches(1)
    write_batches(tmp_path / "in", tables)
    seen = finish(job_of(session, tmp_path))
    assert_each_as_alone(tmp_path, tables)
    assert [metrics.rows for metrics in seen] == [table.num_rows for table in tables]


def test_a_drain_answers_the_open_windows_of_all(session: Session, tmp_path: Path):
    tables = batches(2)
    write_batches(tmp_path / "in", tables)
    handle = ended(job_of(session, tmp_path))
    metrics = handle.drain()
    assert metrics is not None
    assert_each_as_alone(tmp_path, tables, drain=True)
    for name in ASKED:
        totals = metrics.queries[name].totals
        assert totals["read"] == sum(table.num_rows for table in tables)
        assert totals["open"] == totals["held"] == 0
    assert handle.drain() is None


def test_rows_are_accounted_for_by_query(session: Session, tmp_path: Path):
    tables = batches(3)
    write_batches(tmp_path / "in", tables)
    last = finish(job_of(session, tmp_path))[-1]
    rejected = parquet_rows(tmp_path / "late")
    plan = SharedPlan({name: plan_of(name) for name in ASKED})
    *_, defined = local.run_shared(plan, tables)
    for name in ASKED:
        alone = defined[name]
        assert last.queries[name].totals == alone.totals.to_json(), name
        own = [name in queries.split(", ") for queries in rejected[QUERIES].to_pylist()]
        assert sum(own) == alone.totals.late + alone.totals.quarantined, name


def test_a_rejected_row_comes_once_for_each_reason(session: Session, tmp_path: Path):
    tables = batches(4)
    write_batches(tmp_path / "in", tables)
    finish(job_of(session, tmp_path))
    rejected = parquet_rows(tmp_path / "late")
    by_reason = Counter(zip(rejected["id"].to_pylist(), rejected[REASON].to_pylist(), strict=True))
    assert set(by_reason.values()) == {1}
    null_time = rejected.filter(pa.compute.equal(rejected[REASON], "null ts"))
    assert null_time[QUERIES].unique().to_pylist() == [", ".join(ASKED)]
    assert null_time.num_rows == len(tables)
    assert len(rejected.filter(pa.compute.equal(rejected[REASON], LATE))[QUERIES].unique()) > 1


def test_only_columns_that_a_query_reads_are_sent(session: Session, tmp_path: Path):
    job = other_job_of(session, tmp_path, {"load": ASKED["load"], "sums": ASKED["sums"]})
    assert set(job.settings.schema.names) == {"ts", "sensor", "weight", "price"}


def test_a_stopped_stream_continues(session: Session, tmp_path: Path):
    tables = batches(6)
    for first in (0, 4):
        write_batches(tmp_path / "in", tables[first : first + 4], first=first)
        finish(job_of(session, tmp_path))
    assert_each_as_alone(tmp_path, tables)


def test_a_changed_query_is_refused_by_name(session: Session, tmp_path: Path):
    write_batches(tmp_path / "in", batches(8)[:2])
    finish(job_of(session, tmp_path))
    for queries, name in ((ASKED | {"best": sp.TopK(1, "price")}, "best"), ({"best": ASKED["best"]}, "load")):
        with pytest.raises(sp.CheckpointError, match=f"query '{name}': "):
            other_job_of(session, tmp_path, queries, source="sensor").start()
    with pytest.raises(sp.CheckpointError, match="another query"):
        other_job_of(session, tmp_path, ASKED["best"], source="sensor").start()


def test_outputs_cannot_be_swapped(session: Session, tmp_path: Path):
    write_batches(tmp_path / "in", batches(9)[:2])
    finish(job_of(session, tmp_path))
    swapped = {name: tmp_path / "out" / other for name, other in zip(ASKED, reversed(ASKED), strict=True)}
    with pytest.raises(sp.CheckpointError, match="another query"):
        job_of(session, tmp_path, output=swapped).start()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": sp.Console()}, "a sink for each query"),
        ({"output": {"best": "a"}}, "no sink for 'first', 'load', 'sums'"),
        ({"output": {**dict.fromkeys(ASKED, "a"), "bst": "b"}}, "did you mean 'best'"),
        ({"output": dict.fromkeys(ASKED, "same")}, "must be two folders"),
        ({"output": dict.fromkeys(ASKED, sp.Memory())}, "one sink for 'best' and 'first'"),
        ({"output": dict.fromkeys(ASKED, print)}, "one sink for 'best' and 'first'"),
        ({"window": {"best": "10 s"}}, "none for the query 'first', 'load', 'sums'"),
        ({"window": "10 s", "slide": {"lod": "5 s"}}, "did you mean 'load'"),
        ({"time": None, "output": None}, "time= and output= are needed"),
    ],
)
def test_what_does_not_fit_is_an_error(session: Session, tmp_path: Path, options: dict[str, Any], message: str):
    with pytest.raises(sp.ConfigError, match=message):
        job_of(session, tmp_path, **options)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "at least one query"),
        ({"a/b": ASKED["best"]}, "letters, digits"),
        ({"best": sp.Skyline("pric MIN, rating MAX")}, r"query 'best': .*'pric'"),
        ({"best": "price"}, r"preference 'price': expected MIN, MAX, DIFF or AROUND"),
    ],
)
def test_queries_are_named(session: Session, tmp_path: Path, asked: dict[str, Any], message: str):
    with pytest.raises(sp.ConfigError, match=message):
        other_job_of(session, tmp_path, asked)


def test_queries_are_a_mapping(session: Session, tmp_path: Path):
    rows = read_batches(session, tmp_path / "in", SCHEMA)
    with pytest.raises(sp.ConfigError, match="mapping"):
        sp.streams(rows, [ASKED["best"]], time="ts", window="10 s", checkpoint=tmp_path, output=tmp_path / "out")  # type: ignore[arg-type]


def test_a_job_shows_each_query_and_its_output(session: Session, tmp_path: Path):
    job = job_of(session, tmp_path)
    for part in ("best: ", "40 seconds of ts, every 10 seconds", "output of load", "late rows: "):
        assert part in repr(job)


def test_a_preference_is_a_query(session: Session, tmp_path: Path):
    text, composed = "price MIN, rating MAX", sp.low("price") * sp.high("rating")
    several = other_job_of(session, tmp_path, {"text": text, "composed": composed, "load": ASKED["load"]})
    plans = several.settings.plan.plans  # type: ignore[union-attr]
    for name, preference in (("text", text), ("composed", composed)):
        one = other_job_of(session, tmp_path, preference).settings.plan
        assert plans[name].query == one.query == sp.Skyline(preference)  # type: ignore[union-attr]


def test_lengths_of_windows_are_given_by_name(session: Session, tmp_path: Path):
    two = {"best": ASKED["best"], "load": ASKED["load"]}
    windows = {"best": "1 minute", "load": Length(20 * SECOND)}
    job = other_job_of(session, tmp_path, two, window=windows, slide={"best": "20 s"})
    plans = job.settings.plan.plans  # type: ignore[union-attr]
    assert plans["best"].windows == Windows(60 * SECOND, 20 * SECOND)
    assert plans["load"].windows == Windows(20 * SECOND, 20 * SECOND)
