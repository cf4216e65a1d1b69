"""Rows that a table function receives one by one become the columns that they were, and answers become rows of PySpark."""

from __future__ import annotations

from collections import Counter
from datetime import UTC as UTC_ZONE
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql import Row
from tests.rows import UTC, multiset, tables

from skypane.runtime.spark.sql.row_transfer import columns_of, rows_of
from skypane.types import ConfigError

NAIVE = datetime(2026, 3, 29, 2, 30, tzinfo=UTC_ZONE).replace(tzinfo=None)
EVERY = pa.table({
    "time": pa.array([7, None], UTC),
    "local": pa.array([NAIVE, None], pa.timestamp("us")),
    "day": pa.array([date(2026, 1, 1), None]),
    "cost": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
    "flag": pa.array([True, None]),
    "code": pa.array([b"\x00a", None]),
    "small": pa.array([1.5, None], pa.float32()),
    "span": pa.array([timedelta(microseconds=5), None], pa.duration("us")),
    "tags": pa.array([["a", None], None], pa.list_(pa.string())),
    "place": pa.array([{"x": 1, "names": [("a", 1)]}, None], pa.struct([("x", pa.int32()), ("names", pa.map_(pa.string(), pa.int64()))])),
    "counts": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
})  # fmt: skip


def in_spark(value: Any, kind: pa.DataType) -> Any:
    """A value as PySpark gives it to a function that receives rows, and a time as the number that the analysis requests."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return Row(**{field.name: in_spark(value[field.name], field.type) for field in kind})
    if pa.types.is_map(kind):
        return dict(value)
    if pa.types.is_timestamp(kind) and kind.tz:
        return (value - datetime(1970, 1, 1, tzinfo=UTC_ZONE)) // timedelta(microseconds=1)
    return bytearray(value) if isinstance(value, bytes) else value


def singly(rows: pa.Table) -> list[Row]:
    return [Row(**{f.name: in_spark(row[f.name], f.type) for f in rows.schema}) for row in rows.to_pylist()]


@given(tables(clean=False))
def test_rows_become_the_columns_that_they_were(rows: pa.Table):
    if rows.num_rows:
        assert multiset(pa.Table.from_batches([columns_of(singly(rows), rows.schema)])) == multiset(rows)


def test_each_type_is_kept():
    batch = columns_of(singly(EVERY), EVERY.schema)
    assert batch.schema == EVERY.schema
    assert batch.to_pylist() == EVERY.to_pylist()


def test_a_time_in_the_hour_that_comes_twice_stays_itself():
    instants = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC_ZONE) for hour in (0, 1)]
    rows = pa.table({"time": pa.array(instants, UTC)})
    assert columns_of(singly(rows), rows.schema).column(0).to_pylist() == instants


def test_the_type_of_an_expression_is_that_of_its_values():
    batch = columns_of([Row(x=Decimal("1.5")), Row(x=None)], pa.schema([("x", pa.null())]))
    assert pa.types.is_decimal(batch.schema.field("x").type)
    with pytest.raises(ConfigError, match="'ts - 1' is a time, which Spark sends exactly from"):
        columns_of([Row(**{"ts - 1": NAIVE})], pa.schema([("ts - 1", pa.null())]))


def test_answers_are_rows_with_dicts_for_structs_and_maps():
    batch = EVERY.to_batches()[0]
    first, second = rows_of(batch)
    values = dict(zip(batch.schema.names, first, strict=True))
    assert values["counts"] == {"a": 1}
    assert values["place"] == {"x": 1, "names": {"a": 1}}
    assert values["tags"] == ["a", None]
    assert set(second) == {None}
    assert Counter(map(len, (first, second))) == {batch.num_columns: 2}
