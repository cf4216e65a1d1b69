"""Bad rows, bad streams, bad options: each has an outcome that is stated, counted and seen, none is dropped silently."""

from __future__ import annotations

import math
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.runtime.streams import (
    SECOND,
    AnySession,
    CountBySensor,
    expected,
    finish,
    ids_by_reason,
    late_rows,
    parquet_rows,
    read_batches,
    stream_job,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.runtime import local
from skypane.testing import Session
from skypane.windows import Windows

NOON = 1_700_000_000 * SECOND
CENTURY = 100 * 365 * 86_400 * SECOND
PARETO = sp.low("price") * sp.high("rating")
SKYLINE = Skyline(PARETO, ("sensor",))
WINDOWS = Windows(30 * SECOND, 10 * SECOND)
WATERMARK = sp.Watermark("10 seconds", patience=1)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("sensor", pa.string()),
        ("price", pa.float64()),
        ("rating", pa.float64()),
    ]
)


def rows(*values: tuple[int, int | None, str | None, float | None, float | None]) -> pa.Table:
    """Return a batch of rows, their times in microseconds after NOON."""
    times = [None if time is None else NOON + time for _, time, *_ in values]
    columns = [list(column) for column in zip(*values, strict=True)] or [[] for _ in SCHEMA]
    columns[1] = times
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


@dataclass(frozen=True)
class Outcome:
    """What has become of a stream."""

    answers: pa.Table
    rejected: dict[str, list[int]]
    metrics: list[sp.BatchMetrics]

    @property
    def answered(self) -> Counter[int]:
        """In how many windows each row, by its id, has been answered."""
        return Counter(self.answers["id"].to_pylist())


def outcome(
    session: AnySession, folder: Path, batches: list[pa.Table], query: Query = SKYLINE, windows: Windows = WINDOWS
) -> Outcome:
    """Stream `batches`; hold answers, counts and late sink against the oracle, batch by batch."""
    write_batches(folder / "in", batches)
    memory, plan = sp.Memory(), Plan(query, windows, "ts", WATERMARK)
    options: dict[str, Any] = {"window": windows, "progress": WATERMARK, "output": memory, "late": folder / "late"}
    metrics = finish(stream_job(session, folder, query, SCHEMA, **options))
    assert windows_of(memory.table()) == expected(plan, batches)
    rejected = ids_by_reason(parquet_rows(folder / "late")) if any((folder / "late").glob("*.parquet")) else {}
    for batch, rows, outcome in zip(metrics, batches, local.run(plan, batches), strict=True):
        assert batch.rows == rows.num_rows
        assert (batch.late_rows, batch.quarantined) == (outcome.rejection.late_rows, outcome.rejection.quarantined)
        files = (folder / "late").glob(f"*-{batch.batch_id:012d}-*.parquet")
        assert counted(*(pq.read_table(path) for path in files)) == counted(*outcome.rejection.rows)
    return Outcome(memory.table(), rejected, metrics)


def counted(*tables: pa.Table) -> Counter[str]:
    """Return all rows; times as numbers, as Python has none for the absurd ones."""
    whole = (table.set_column(1, "ts", table["ts"].cast(pa.int64())) for table in tables)
    return Counter(str(row) for table in whole for row in table.to_pylist())


def test_rows_that_cannot_be_ranked_or_placed(session: Session, tmp_path: Path):
    good = [(number, number * SECOND, "a", 5.0, 5.0) for number in range(10)]
    bad = [
        (20, 20 * SECOND, "a", None, 5.0),
        (21, 20 * SECOND, "a", 5.0, None),
        (22, 20 * SECOND, "a", math.nan, 5.0),
        (23, 20 * SECOND, "a", 5.0, math.nan),
        (24, 20 * SECOND, "a", None, math.nan),
        (25, None, "a", 5.0, 5.0),
        (26, None, None, None, None),
    ]
    allowed = [(30, 21 * SECOND, None, 5.0, 5.0), (31, 21 * SECOND, None, 5.0, 5.0)]
    end = [(40, 300 * SECOND, "a", 1.0, 1.0)]
    result = outcome(session, tmp_path, [rows(*good), rows(*bad, *allowed), rows(*end)])
    assert result.rejected == {
        "null price": [20, 24],
        "null rating": [21],
        "NaN price": [22],
        "NaN rating": [23],
        "null ts": [25, 26],
    }
    assert result.metrics[1].quarantined == {reason: len(ids) for reason, ids in result.rejected.items()}
    assert result.metrics[1].rows == len(bad) + len(allowed)
    assert result.answered[30] == result.answered[31] == 3  # a null is a group of its own, and ties are all kept


def test_infinities_are_ordered(session: Session, tmp_path: Path):
    batch = rows(
        (0, 0, "best price", -math.inf, 1.0),
        (1, 1, "best price", -1e308, 1.0),
        (2, 2, "worst price", math.inf, 1.0),
        (3, 3, "worst price", 1e308, 1.0),
        (4, 4, "trade-off", math.inf, math.inf),
        (5, 5, "trade-off", -math.inf, -math.inf),
    )
    result = outcome(session, tmp_path, [batch, rows((9, 300 * SECOND, "z", 1.0, 1.0))])
    assert result.rejected == {}
    assert set(result.answered) == {0, 3, 4, 5}


def test_times_far_from_the_rest(session: Session, tmp_path: Path):
    """What lies far behind gets windows of its own while nothing is closed, and is late after; far ahead is quarantined."""
    first = [(0, -CENTURY, "old", 1.0, 1.0), *((number, number, "a", 1.0, 1.0) for number in range(1, 4))]
    second = [
        (10, CENTURY, "a", 1.0, 1.0),
        (11, 7_000 * 365 * 86_400 * SECOND, "a", 1.0, 1.0),
        (12, -CENTURY, "a", 1.0, 1.0),
        (13, -1_900 * 365 * 86_400 * SECOND, "a", 1.0, 1.0),
        (14, 20 * SECOND, "a", 1.0, 1.0),
    ]
    absurd = [(20, (1 << 63) - 1 - NOON, "a", 1.0, 1.0), (21, 21 * SECOND, "a", 1.0, 1.0)]
    result = outcome(
        session, tmp_path, [rows(*first), rows(*second), rows(*absurd), rows((30, 300 * SECOND, "a", 1, 1))]
    )
    assert result.answered[0] == 3
    assert result.answers["window_end"][0].as_py() < datetime(1930, 1, 1, tzinfo=UTC)
    assert result.answered[14] == result.answered[21] == 3
    assert result.rejected.pop("future") == [10, 11]
    assert result.rejected.pop("late") == [12, 13]
    assert result.rejected == {"absurd ts": [20]}
    assert result.metrics[-1].newest == NOON + 300 * SECOND


def test_empty_batches_empty_panes_and_keys_without_rows(session: Session, tmp_path: Path):
    batches = [
        rows(),
        rows((0, 0, "a", 1.0, 1.0), (1, 5 * SECOND, "b", 1.0, 1.0)),
        rows(),
        rows((2, 100 * SECOND, "a", 1.0, 1.0)),  # eight empty panes, three of them whole windows, and no "b"
        rows((3, 200 * SECOND, "a", 1.0, 1.0)),
        rows(),
    ]
    result = outcome(session, tmp_path, batches)
    assert [batch.windows for batch in result.metrics] == [0, 0, 0, 3, 3, 0]
    assert [batch.empty_windows for batch in result.metrics] == [0, 0, 0, 6, 7, 0]
    assert len(empty_windows(result)) == 6 + 7
    sensors = Counter(zip(result.answers["id"].to_pylist(), result.answers["sensor"].to_pylist(), strict=True))
    assert sensors == {(0, "a"): 3, (1, "b"): 3, (2, "a"): 3}
    assert result.metrics[0].punctuation is None
    assert result.metrics[-1].punctuation == result.metrics[-2].punctuation


def empty_windows(result: Outcome) -> list[int]:
    """Return the starts of the windows without rows, as the docs say that a reader of the output finds them."""
    answered = {start.as_py() for start in result.answers["window_start"].cast(pa.int64())}
    punctuation = result.metrics[-1].punctuation
    assert punctuation is not None
    passed = range(min(answered), punctuation - WINDOWS.length + 1, WINDOWS.slide)
    return [start for start in passed if start not in answered]


def test_one_row_per_window(session: Session, tmp_path: Path):
    batches = [rows((number, number * 10 * SECOND, "a", float(number), 1.0)) for number in range(6)]
    result = outcome(session, tmp_path, batches, windows=Windows(10 * SECOND, 10 * SECOND))
    assert result.answered == Counter(range(4))


def test_a_million_equal_rows_are_all_kept(session: Session, tmp_path: Path):
    n = 1_000_000
    equal = pa.table(
        [pa.array(range(n)), *(pa.repeat(pa.scalar(value, field.type), n) for value, field in zip(
            (NOON, "a", 1.0, 1.0), list(SCHEMA)[1:], strict=True
        ))],
        schema=SCHEMA,
    )  # fmt: skip
    write_batches(tmp_path / "in", [equal, rows((n, 300 * SECOND, "a", 1.0, 1.0))])
    metrics = finish(stream_job(session, tmp_path, SKYLINE, SCHEMA, window="30 seconds"))
    assert [batch.window_rows for batch in metrics] == [0, n]


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("stream")
    return read_batches(spark, folder, late_rows(0, batches=1).pop().schema)


GOOD: dict[str, Any] = {
    "time": "ts",
    "window": "1 minute",
    "slide": "20 seconds",
    "checkpoint": "/nowhere/checkpoint",
    "output": "/nowhere/out",
}


def job(frame: DataFrame, **options: Any) -> Any:
    """Return the skyline job of GOOD's options, changed by `options`; None leaves one out."""
    changed = {name: value for name, value in (GOOD | options).items() if value is not None}
    query = sp.Skyline(changed.pop("preference", PARETO), changed.pop("by", ()))
    return sp.stream(frame, query, **changed)


@dataclass(frozen=True)
class InMonths(CountBySensor):
    """A query of a user's own, whose answers have a type that only Arrow has."""

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([schema.field("sensor"), pa.field("term", pa.month_day_nano_interval())])


REFUSED: dict[str, tuple[Callable[[DataFrame], Any], str]] = {
    "unknown criterion": (lambda df: job(df, preference="prise MIN"), r"unknown column 'prise'.*price"),
    "unknown time": (lambda df: job(df, time="tz"), r"unknown column 'tz'.*ts"),
    "unknown source": (lambda df: job(df, source="carrier"), r"unknown column 'carrier'.*sensor"),
    "unknown group": (lambda df: job(df, by="city"), r"column 'city' does not exist.*sensor"),
    "criterion of a wrong type": (lambda df: job(df.withColumn("prices", sf.array("price")), preference="prices MIN"), r"'prices'.*list"),
    "time of a wrong type": (lambda df: job(df, time="price"), r"time column 'price' is of type double; cast it"),
    "slide over length": (lambda df: job(df, slide="2 minutes"), r"slide=120000000, length=60000000"),
    "no slide": (lambda df: job(df, slide="0 s"), r"need 0 < slide <= length, got slide=0"),
    "negative slide": (lambda df: job(df, slide="-1 minutes"), r"slide.*-"),
    "negative length": (lambda df: job(df, window="-5 us", slide="-6 us"), r"slide=-6, length=-5"),
    "unknown unit": (lambda df: job(df, window="1 fortnight"), r"window: unknown unit 'fortnight'"),
    "months": (lambda df: job(df, window="1 month"), r"window: unknown unit 'month'"),
    "not a duration": (lambda df: job(df, window=1.5), r"window must be .*got 1\.5"),
    "column window_start": (lambda df: job(df.withColumnRenamed("id", "window_start")), r"add columns window_start and window_end: rename window_start"),
    "column Window_Start": (lambda df: job(df.withColumnRenamed("id", "Window_Start")), r"add columns window_start and window_end: rename Window_Start"),
    "columns of one name but for case": (lambda df: job(df.withColumnRenamed("id", "PRICE")), r"columns 'PRICE' and 'price' are the same to Spark"),
    "months as a column": (lambda df: job(df.withColumn("term", sf.expr("INTERVAL '1' MONTH"))), r"column 'term' is of type interval month.*cast it"),
    "a calendar interval": (lambda df: job(df.withColumn("term", sf.expr("make_interval(1, 2)"))), r"column 'term' is of type interval, .*cast it"),
    "months deep in a column": (lambda df: job(df.withColumn("term", sf.expr("named_struct('of', array(INTERVAL '1' MONTH))"))), r"column 'term' is of type struct<of:array<interval month>>, .*cast it"),
    "months in a batch": (lambda df: sp.skyline(df.sparkSession.sql("SELECT 1 AS price, 2 AS rating, INTERVAL '1' MONTH AS term"), PARETO), r"column 'term' is of type interval month, .*cast it"),
    "months in the answers": (lambda df: sp.stream(df, InMonths(), **GOOD), r"column 'term' of the answers is of type month_day_nano_interval, which Spark does not have.*cast it"),
    "months in the answers of a batch": (lambda df: sp.ask(df.sparkSession.sql("SELECT 'a' AS sensor"), InMonths()), r"column 'term' of the answers is of type month_day_nano_interval, which Spark does not have.*cast it"),
    "offset over 64 bits": (lambda df: job(df, window=sp.Windows.of("1 day", offset="99999999999 days"), slide=None), r"offset=8639999999913600000000"),
    "column reason": (lambda df: job(df.withColumnRenamed("id", "reason"), late="late"), r"'reason'.*rename"),
    "one option missing": (lambda df: job(df, checkpoint=None), r"^checkpoint= is needed"),
    "all that is missing": (lambda df: sp.stream(df, sp.Skyline(PARETO)), r"time= and window= and checkpoint= and output= are needed"),
    "a static door": (lambda df: sp.skyline(df, PARETO), r"is a stream.*sp\.stream\(rows, sp\.Skyline"),
    "memory by name": (lambda _: sp.Memory("name"), r"batches.*got 'name'"),  # type: ignore[arg-type]
    "share as a text": (lambda _: sp.AqKSlack("1%"), r"max_drop is a share.*0\.01.*got '1%'"),  # type: ignore[arg-type]
    "a bare number": (lambda df: job(df, window=3600), r"window must be.*got 3600.*'3600 seconds'"),
    "output of no kind": (lambda df: job(df, output=5), r"output must be a path.*got 5"),
    "output and late in one": (lambda df: job(df, late="/nowhere/out"), r"two folders, both are /nowhere/out$"),
    "format": (lambda _: sp.Directory("out", "orc"), r"parquet, csv or json, got 'orc'"),  # type: ignore[arg-type]
    "splitting": (lambda _: sp.WorkerOptions(splitting="A"), r"splitting must be one of PB_RR, TB_RR, AS, AS_PID, got 'A'"),
    "plq workers": (lambda _: sp.WorkerOptions(plq_workers=0), r"plq.*at least 1.*got 0"),
    "wlq workers": (lambda _: sp.WorkerOptions(wlq_workers=-1), r"wlq.*at least 1.*got -1"),
    "workers": (lambda df: job(df, workers=4), r"workers must be WorkerOptions\(plq_workers=.*got 4"),
    "a slide twice": (lambda df: job(df, window=sp.Windows.of("1 hour"), slide="1 minute"), r"slide='1 minute' is set twice: window=Windows\(length='1 hour', .*leave slide= out"),
    "elastic twice": (lambda df: job(df, workers=sp.WorkerOptions(), elastic=sp.Fuzzy()), r"elastic= is set twice.*WorkerOptions\(elastic=\.\.\.\) only"),
    "microseconds as texts": (lambda _: sp.Windows("1 hour", "1 hour"), r"Windows\.of\('1 hour', '1 hour'\)"),  # type: ignore[arg-type]
    "progress": (lambda df: job(df, progress="1 hour"), r"progress must be a policy.*got '1 hour'"),
    "drop budget": (lambda _: sp.AqKSlack(max_drop=2), r"max_drop.*got 2"),
    "delay": (lambda _: sp.Watermark("-1 second"), r"delay must not be negative, got '-1 seconds'"),
    "no criterion": (lambda df: job(df, preference=sp.diff("sensor")), r"at least one of low, high or around"),
    "k of top-k": (lambda _: sp.TopK(0, "price"), r"k >= 1, got k=0"),
    "k of k-dominant": (lambda _: sp.KDominant(3, PARETO), r"1 <= k <= 2.*got k=3"),
    "delta": (lambda _: sp.TopDelta(-1, PARETO), r"delta >= 0, got delta=-1"),
    "score": (lambda _: sp.TopK(3, "price --1"), r"price --1.*comment"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_run_is_refused_at_the_call(call: Callable[[DataFrame], Any], message: str, stream: DataFrame):
    with pytest.raises(sp.ConfigError, match=message):
        call(stream)


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        ("sometimes", r"trigger: cannot read 'sometimes' .*'available now'"),
        ("-1 second", r"trigger must not be negative, got '-1 second'"),
        (5, r"trigger must be a text .*got 5"),
    ],
)
def test_a_trigger_that_cannot_be_read_is_refused_before_anything_is_written(
    trigger: Any, message: str, stream: DataFrame, tmp_path: Path
):
    with pytest.raises(sp.ConfigError, match=message):
        job(stream, checkpoint=tmp_path / "checkpoint", output=sp.Memory()).start(trigger=trigger)
    assert not (tmp_path / "checkpoint").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with little room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["/usr/bin/mount", "-t", "tmpfs", "-o", "size=200k", "none", disk], check=False).returncode
    ):
        pytest.skip("only an administrator may mount a disk")
    yield disk
    subprocess.run(["/usr/bin/umount", "-l", disk], check=True)


def test_a_full_disk_is_reported_and_nothing_is_lost_when_there_is_room(
    session: Session, small_disk: Path, tmp_path: Path
):
    batches = late_rows(4)
    write_batches(tmp_path / "in", batches)
    full = small_disk / "full"
    plan = Plan(Skyline(PARETO), Windows(60 * SECOND, 20 * SECOND), "ts", sp.Watermark("20 seconds"))

    def started() -> sp.StreamHandle:
        rows = read_batches(session, tmp_path / "in", batches[0].schema)
        places = {"checkpoint": small_disk / "checkpoint", "output": small_disk / "out"}
        handle: sp.StreamHandle = job(rows, progress=plan.progress, **places).start(trigger="available now")
        return handle

    full.write_bytes(bytes(200 * 1024))
    with pytest.raises(sp.SkypaneError, match=r"checkpoint: .*No space left.*; free space there, and start again"):
        started()
    full.write_bytes(bytes(100 * 1024))
    with pytest.raises(sp.SkypaneError, match="No space left") as later:
        started().await_termination(120)
    assert len(str(later.value).splitlines()) == 1
    assert "Traceback" not in str(later.value)
    subprocess.run(["/usr/bin/mount", "-o", "remount,size=20m", small_disk], check=True)
    assert started().await_termination(60)
    assert windows_of(parquet_rows(small_disk / "out")) == expected(plan, batches)
