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
    "nothing": pa.nulls(2),
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


def expression(kind: str, value: object) -> pa.Array:
    """The column of an expression that Spark calls of a type, of which one row is sent."""
    return columns_of([Row(x=Row(kind=kind, value=value))], pa.schema([("x", pa.null())])).column(0)


def test_the_type_of_an_expression_is_the_same_whatever_its_values_are():
    for value in (Decimal("1.50"), Decimal("12345.00"), None):
        assert expression("decimal(12,2)", value).type == pa.decimal128(12, 2)
    assert expression("tinyint", 1).type == pa.int8()
    assert expression("string", None).type == pa.string()
    assert expression("timestamp_ntz", NAIVE).to_pylist() == [NAIVE]
    assert expression("interval day to second", timedelta(microseconds=5)).type == pa.duration("us")


@pytest.mark.parametrize("kind", ["timestamp", "array<int>"])
def test_an_expression_whose_values_would_change_is_refused_though_it_is_null(kind: str):
    with pytest.raises(
        ConfigError, match=rf"'x' is of type {kind}, of which Spark sends columns alone before 4\.1: name"
    ):
        expression(kind, None)


def test_answers_are_rows_with_dicts_for_structs_and_maps():
    batch = EVERY.to_batches()[0]
    first, second = rows_of(batch)
    values = dict(zip(batch.schema.names, first, strict=True))
    assert values["counts"] == {"a": 1}
    assert values["place"] == {"x": 1, "names": {"a": 1}}
    assert values["tags"] == ["a", None]
    assert set(second) == {None}
    assert Counter(map(len, (first, second))) == {batch.num_columns: 2}
