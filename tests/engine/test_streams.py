"""sp.streams: several queries over one stream answer, drop and count as each would alone, and all commit together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.runtime.streams import (
    SECOND,
    AnySession,
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
    return Plan(ASKED[name], WINDOWS[name], "ts", sp.KSlack(), "sensor")


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


def job_of(session: AnySession, folder: Path, schema: pa.Schema, **options: Any) -> sp.Job:
    (folder / "in").mkdir(exist_ok=True)
    own: dict[str, Any] = {
        "time": "ts",
        "window": WINDOWS,
        "progress": sp.KSlack(),
        "source": "sensor",
        "checkpoint": folder / "checkpoint",
        "output": folder / "out",
        "late": folder / "late",
    }
    return sp.streams(read_batches(session, folder / "in", schema), ASKED, **own | options)


def as_alone(name: str, tables: list[pa.Table], *, drain: bool = False) -> list[Any]:
    plan = plan_of(name)
    read = [table.select(plan.reads(table.schema)) for table in tables]
    return expected(plan, [*read, local.Drain()] if drain else read)


def test_each_query_answers_as_alone(session: Session, tmp_path: Path):
    tables = batches(1)
    write_batches(tmp_path / "in", tables)
    job = job_of(session, tmp_path, tables[0].schema)
    seen = finish(job)
    for name in ASKED:
        assert windows_of(parquet_rows(tmp_path / "out" / name)) == as_alone(name, tables), name
    assert [metrics.rows for metrics in seen] == [table.num_rows for table in tables]


def test_a_drain_answers_the_open_windows_of_all(session: Session, tmp_path: Path):
    tables = batches(2)
    write_batches(tmp_path / "in", tables)
    handle = job_of(session, tmp_path, tables[0].schema).start(trigger="available now")
    assert handle.await_termination(600)
    metrics = handle.drain()
    assert metrics is not None
    for name in ASKED:
        assert windows_of(parquet_rows(tmp_path / "out" / name)) == as_alone(name, tables, drain=True), name
        totals = metrics.queries[name].totals
        assert totals["read"] == sum(table.num_rows for table in tables)
        assert totals["open"] == totals["held"] == 0
    assert handle.drain() is None


def test_rows_are_accounted_for_by_query(session: Session, tmp_path: Path):
    tables = batches(3)
    write_batches(tmp_path / "in", tables)
    last = finish(job_of(session, tmp_path, tables[0].schema))[-1]
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
    finish(job_of(session, tmp_path, tables[0].schema))
    rejected = parquet_rows(tmp_path / "late")
    by_reason = Counter(zip(rejected["id"].to_pylist(), rejected[REASON].to_pylist(), strict=True))
    assert set(by_reason.values()) == {1}
    null_time = rejected.filter(pa.compute.equal(rejected[REASON], "null ts"))
    assert null_time[QUERIES].unique().to_pylist() == [", ".join(ASKED)]
    assert null_time.num_rows == len(tables)
    assert len(rejected.filter(pa.compute.equal(rejected[REASON], LATE))[QUERIES].unique()) > 1


def test_only_columns_that_a_query_reads_are_sent(session: Session, tmp_path: Path):
    tables = batches(5)
    write_batches(tmp_path / "in", tables)
    two = {"load": ASKED["load"], "sums": ASKED["sums"]}
    rows = read_batches(session, tmp_path / "in", tables[0].schema)
    job = sp.streams(rows, two, time="ts", window="10 s", checkpoint=tmp_path / "checkpoint", output=tmp_path / "out")
    assert set(job.settings.schema.names) == {"ts", "sensor", "weight", "price"}


def test_a_stopped_stream_continues(session: Session, tmp_path: Path):
    tables = batches(6)
    write_batches(tmp_path / "in", tables[:4])
    finish(job_of(session, tmp_path, tables[0].schema))
    write_batches(tmp_path / "in", tables[4:], first=4)
    finish(job_of(session, tmp_path, tables[0].schema))
    for name in ASKED:
        assert windows_of(parquet_rows(tmp_path / "out" / name)) == as_alone(name, tables), name


def test_a_changed_query_is_refused_by_name(session: Session, tmp_path: Path):
    tables = batches(8)
    write_batches(tmp_path / "in", tables[:2])
    schema = tables[0].schema
    finish(job_of(session, tmp_path, schema))
    rows = read_batches(session, tmp_path / "in", schema)
    options: dict[str, Any] = {
        "time": "ts",
        "window": "10 s",
        "source": "sensor",
        "checkpoint": tmp_path / "checkpoint",
        "output": tmp_path / "out",
    }
    for queries, name in ((ASKED | {"best": sp.TopK(1, "price")}, "best"), ({"best": ASKED["best"]}, "load")):
        with pytest.raises(sp.CheckpointError, match=f"query '{name}': "):
            sp.streams(rows, queries, **options).start()
    with pytest.raises(sp.CheckpointError, match="another query"):
        sp.stream(rows, ASKED["best"], **options).start()


def test_outputs_cannot_be_swapped(session: Session, tmp_path: Path):
    tables = batches(9)
    write_batches(tmp_path / "in", tables[:2])
    schema = tables[0].schema
    finish(job_of(session, tmp_path, schema))
    swapped = {name: tmp_path / "out" / other for name, other in zip(ASKED, reversed(ASKED), strict=True)}
    with pytest.raises(sp.CheckpointError, match="another query"):
        job_of(session, tmp_path, schema, output=swapped).start()


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
        job_of(session, tmp_path, late_rows(0, batches=1)[0].schema, **options)


def test_queries_are_named(session: Session, tmp_path: Path):
    write_batches(tmp_path / "in", [])
    rows = read_batches(session, tmp_path / "in", late_rows(0, batches=1)[0].schema)
    asked: dict[str, Any] = {"time": "ts", "window": "10 s", "checkpoint": tmp_path, "output": tmp_path / "out"}
    with pytest.raises(sp.ConfigError, match="at least one query"):
        sp.streams(rows, {}, **asked)
    with pytest.raises(sp.ConfigError, match="letters, digits"):
        sp.streams(rows, {"a/b": ASKED["best"]}, **asked)
    with pytest.raises(sp.ConfigError, match=r"query 'best': .*'pric'"):
        sp.streams(rows, {"best": sp.Skyline("pric MIN, rating MAX")}, **asked)
    with pytest.raises(sp.ConfigError, match="mapping"):
        sp.streams(rows, [ASKED["best"]], **asked)  # type: ignore[arg-type]


def test_a_job_shows_each_query_and_its_output(session: Session, tmp_path: Path):
    job = job_of(session, tmp_path, late_rows(0, batches=1)[0].schema)
    for part in ("best: ", "40 seconds of ts, every 10 seconds", "output of load", "late rows: "):
        assert part in repr(job)


def test_a_preference_is_a_query(session: Session, tmp_path: Path):
    write_batches(tmp_path / "in", [])
    rows = read_batches(session, tmp_path / "in", late_rows(0, batches=1)[0].schema)
    asked: dict[str, Any] = {"time": "ts", "window": "10 s", "checkpoint": tmp_path, "output": tmp_path / "out"}
    text, composed = "price MIN, rating MAX", sp.low("price") * sp.high("rating")
    several = sp.streams(rows, {"text": text, "composed": composed, "load": ASKED["load"]}, **asked)
    plans = several.settings.plan.plans  # type: ignore[union-attr]
    assert [plans[name].query for name in ("text", "composed")] == [sp.Skyline(text), sp.Skyline(composed)]
    assert [sp.stream(rows, one, **asked).settings.plan.query for one in (text, composed)] == [  # type: ignore[union-attr]
        sp.Skyline(text),
        sp.Skyline(composed),
    ]
    with pytest.raises(sp.ConfigError, match=r"preference 'price': expected MIN, MAX, DIFF or AROUND"):
        sp.streams(rows, {"best": "price"}, **asked)


def test_lengths_of_windows_are_given_by_name(session: Session, tmp_path: Path):
    write_batches(tmp_path / "in", [])
    rows = read_batches(session, tmp_path / "in", late_rows(0, batches=1)[0].schema)
    two = {"best": ASKED["best"], "load": ASKED["load"]}
    job = sp.streams(
        rows,
        two,
        time="ts",
        window={"best": "1 minute", "load": Length(20 * SECOND)},
        slide={"best": "20 s"},
        checkpoint=tmp_path / "checkpoint",
        output=tmp_path / "out",
    )
    plans = job.settings.plan.plans  # type: ignore[union-attr]
    assert plans["best"].windows == Windows(60 * SECOND, 20 * SECOND)
    assert plans["load"].windows == Windows(20 * SECOND, 20 * SECOND)
