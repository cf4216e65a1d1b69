"""How rows are cut into Arrow batches on their way into Python."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.runtime.driver import WINDOWS, Task, job_of
from tests.runtime.streams import SECOND, NaiveWatermark, expected, finish, late_rows, windows_of, write_batches

import skypane as sp
from skypane.plan import Plan
from skypane.runtime.spark.arrow_batches import BYTES, ROOMS, ROWS, ArrowBatches, ways
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer

NUMBERS = pa.schema(
    {"time": pa.timestamp("us", "UTC"), "x": pa.float64(), "there": pa.bool_(), "cost": pa.decimal128(9, 2)}
)
ANY = ArrowBatches(ROWS, measured=True)


def test_rows_of_a_fixed_width_are_counted_and_not_measured() -> None:
    assert ways(NUMBERS) == (ArrowBatches(ROWS, measured=False),)


def test_wide_rows_come_in_fewer_to_a_batch_so_that_it_stays_under_the_bound() -> None:
    wide = pa.schema([(f"c{index}", pa.float64()) for index in range(1_000)])
    [batches] = ways(wide)
    assert not batches.measured
    assert 60 << 20 < batches.rows * 1_000 * 8 < 64 << 20


@pytest.mark.parametrize("columns", [1, 1_000])
def test_rows_with_texts_are_counted_as_long_as_these_are_short(columns: int) -> None:
    schema = pa.schema([*NUMBERS, ("note", pa.string()), *((f"b{index}", pa.binary()) for index in range(columns))])
    *short, last = ways(schema)
    assert [way.room for way in short] == list(ROOMS)
    for way in short:
        assert not way.measured
        assert way.texts == tuple(schema.names[4:])
        assert 50 << 20 < way.rows * (way.room + 4 * columns) < 64 << 20
    assert last == ANY


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.list_(pa.float64()), pa.struct({"x": pa.string()})])
def test_rows_with_values_that_hold_others_are_measured(kind: pa.DataType) -> None:
    assert ways(NUMBERS.append(pa.field("note", kind))) == (ANY,)


class Seen(NamedTuple):
    """What a task saw: rows, their bytes and columns, and the rows and the bytes of the largest batch."""

    rows: int
    bytes: int
    columns: int
    most_rows: int
    most_bytes: int


def summaries(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Report what a task saw, which is nothing where the first batch has a text that is too long."""
    parts = list(batches)
    table = pa.Table.from_batches(parts, None if parts else pa.schema([]))
    most_rows = max((part.num_rows for part in parts), default=0)
    most_bytes = max((part.nbytes for part in parts), default=0)
    seen = Seen(table.num_rows, table.nbytes, table.num_columns, most_rows, most_bytes)
    yield pa.RecordBatch.from_pydict({"report": [json.dumps(seen)]})


def test_texts_that_turn_out_too_long_are_all_sent_another_way(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set(BYTES, 10 << 20)
    text = "IF(id = 7, NULL, repeat('x', IF(id = 30000, {}, 6)))"
    select = ("id AS long", text + " AS `a b`", "CAST(" + text + " AS BINARY) AS b", text + " COLLATE UTF8_LCASE AS c")
    schema = pa.schema({"long": pa.int64(), "a b": pa.string(), "b": pa.binary(), "c": pa.string()})
    transfer = ArrowTransfer(schema)
    forgotten: list[list[str]] = []

    def sent(size: int) -> int:
        rows = other.range(0, 40_000, 1, 1).selectExpr(*(column.format(size) for column in select))
        [report] = transfer.run(rows, summaries, forgotten.append)
        seen = Seen(*json.loads(report))
        assert (seen.rows, seen.columns) == (40_000, 4)
        assert seen.bytes > 3 * (size + 39_998 * 6)
        return seen.most_rows

    assert 16_000 < sent(10) < 16_384
    assert not forgotten
    assert 1_000 < sent(5_000) < 1_024
    assert [len(reports) for reports in forgotten] == [1]
    assert sent(10) < 1_024, "what has been learnt stays"
    assert sent(1 << 20) == 40_000, "ten bytes of ten million are not reached but by the longest row"
    assert len(forgotten) == 2


@pytest.mark.parametrize(
    ("rows", "kind", "column"),
    [
        (400_000, pa.decimal128(38, 0), "CAST(id AS DECIMAL(38, 0))"),
        (20_000, pa.string(), "repeat('x', 4000)"),
        (1_500, pa.string(), "repeat('x', 60000)"),
        (100, pa.string(), "repeat('x', 1000000)"),
        (10_000, pa.list_(pa.int64()), "array_repeat(id, 1000)"),
    ],
)
def test_no_batch_is_longer_than_64_mib_but_by_its_longest_row(
    rows: int, kind: pa.DataType, column: str, spark: SparkSession
) -> None:
    """80 MB and more of each, in one task; rows of many columns where a value is short."""
    wide = 16 if pa.types.is_decimal(kind) else 1
    made = spark.newSession().range(0, rows, 1, 1).selectExpr(*(f"{column} AS c{index}" for index in range(wide)))
    transfer = ArrowTransfer(pa.schema([(f"c{index}", kind) for index in range(wide)]))
    [report] = transfer.run(made, summaries, lambda _: None)
    seen = Seen(*json.loads(report))
    assert seen.rows == rows
    assert 1 << 20 < seen.most_bytes <= (64 << 20) + (2 << 20)


def test_a_stream_whose_texts_grow_to_megabytes_answers_as_the_definition(spark: SparkSession, tmp_path: Path) -> None:
    batches = [
        batch.set_column(2, "sensor", pc.binary_repeat(batch["sensor"], pa.array([size, 1, 1, 1, 1] * 8)))
        for batch, size in zip(late_rows(7, batches=4), [1, 10_000, 3_000_000, 70_000], strict=True)
    ]
    write_batches(tmp_path / "in", batches)
    query, output, late = sp.Skyline("price MIN, rating MAX"), sp.Memory(), sp.Memory()
    plan = Plan(query, WINDOWS, "ts", sp.Watermark("5 seconds"))
    metrics = finish(job_of(spark, Task(str(tmp_path)), query, output=output, late=late, progress=plan.progress))
    assert windows_of(output.table()) == expected(plan, batches)
    assert [batch.rows for batch in metrics] == [batch.num_rows for batch in batches]
    naive = NaiveWatermark(10 * SECOND, 5 * SECOND)
    for batch in batches:
        naive.take(batch)
    assert naive.late
    assert sorted(late.table()["id"].to_pylist()) == sorted(naive.late)
    named = json.loads(max((tmp_path / "checkpoint/skypane/ledger").glob("*.json")).read_text())
    files = {file.name for file in (tmp_path / "checkpoint/skypane/partials").iterdir()}
    assert files
    assert all(file in json.dumps(named) for file in files), "what tasks wrote that ran again is gone"
    assert not list((tmp_path / "checkpoint/skypane/rejected").iterdir())
