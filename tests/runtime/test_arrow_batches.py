"""How rows are cut into Arrow batches on their way into Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from skypane.runtime.spark.arrow_batches import ROWS, ArrowBatches

NUMBERS = pa.schema(
    {"time": pa.timestamp("us", "UTC"), "x": pa.float64(), "there": pa.bool_(), "cost": pa.decimal128(9, 2)}
)


def test_rows_of_a_fixed_width_are_counted_and_not_measured() -> None:
    assert ArrowBatches.of(NUMBERS) == ArrowBatches(ROWS, measured=False)


def test_wide_rows_come_in_fewer_to_a_batch_so_that_it_stays_under_the_bound() -> None:
    wide = pa.schema([(f"c{index}", pa.float64()) for index in range(1_000)])
    batches = ArrowBatches.of(wide)
    assert not batches.measured
    assert 60 << 20 < batches.rows * 1_000 * 8 < 64 << 20


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.list_(pa.float64()), pa.struct({"x": pa.string()})])
def test_rows_with_a_value_of_any_length_are_measured(kind: pa.DataType) -> None:
    assert ArrowBatches.of(NUMBERS.append(pa.field("note", kind))) == ArrowBatches(ROWS, measured=True)


@pytest.mark.parametrize(("texts", "least"), [(False, 1), (True, 10)])
def test_spark_bounds_the_bytes_of_batches_that_hold_texts_only(spark: SparkSession, texts: bool, least: int) -> None:
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"batches": [sum(1 for _ in batches)]})

    other = spark.newSession()
    other.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", 100_000)
    rows = other.range(0, 90_000, 1, 1).selectExpr("id", "'a text' AS note" if texts else "id AS note")
    schema = pa.schema({"id": pa.int64(), "note": pa.string() if texts else pa.int64()})
    ArrowBatches.of(schema).settle(other)
    [told] = rows.mapInArrow(count, "batches long").collect()
    assert (told.batches >= least) if texts else (told.batches == least)
