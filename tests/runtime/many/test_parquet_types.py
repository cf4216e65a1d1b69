"""From which types of a parquet file a column is read, and with which values; from all others no value comes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.runtime.spark.sources.many.parquet_types import cast

INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
MOMENT = datetime(2026, 1, 1, 0, 0, 0, 123456)  # noqa: DTZ001 - of no zone

READ: list[tuple[pa.Array, pa.DataType, list[Any]]] = [
    (pa.array([2**63 - 1, -1]), pa.decimal128(21, 2), [Decimal(2**63 - 1), Decimal(-1)]),
    (pa.array([7], pa.int32()), pa.decimal128(3, 2), [Decimal(7)]),
    (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
    (pa.array([2**53]), pa.float64(), [2.0**53]),
    (pa.array([1.5], pa.float32()), pa.float64(), [1.5]),
    (pa.array([Decimal("1.10")]), pa.decimal128(38, 18), [Decimal("1.10")]),
    (pa.array([Decimal("1.100")]), pa.decimal128(3, 1), [Decimal("1.1")]),
    (pa.array([b"a"]), pa.string(), ["a"]),
    (pa.array(["a", None]).dictionary_encode(), pa.string(), ["a", None]),
    (pa.array(["a"]), pa.binary(), [b"a"]),
    (pa.array([None]), INSTANT, [None]),
    (pa.array([1_767_225_600], pa.timestamp("s")), INSTANT, [datetime(2026, 1, 1, tzinfo=UTC)]),
    (pa.array([1_767_225_600_123_456_789], pa.timestamp("ns", "UTC")), INSTANT, [MOMENT.replace(tzinfo=UTC)]),
    (pa.array([-1], pa.timestamp("ns")), LOCAL, [datetime.fromisoformat("1969-12-31T23:59:59.999999")]),
    (pa.array([MOMENT], pa.timestamp("us", "Europe/Berlin")), LOCAL, [MOMENT]),
    (pa.array([date(2026, 1, 1)]), LOCAL, [MOMENT.replace(microsecond=0)]),
    (pa.array([[1]], pa.list_(pa.int32())), pa.list_(pa.int64()), [[1]]),
    (pa.array([{"b": 1, "c": 2}]), pa.struct([("a", pa.string()), ("b", pa.float64())]), [{"a": None, "b": 1.0}]),
]  # fmt: skip

REFUSED: list[tuple[pa.Array, pa.DataType]] = [
    *[(pa.array([1]), kind) for kind in (INSTANT, LOCAL, pa.date32(), pa.bool_(), pa.string(), pa.binary())],
    (pa.array([2**53 + 1]), pa.float64()), (pa.array([2**31]), pa.int32()), (pa.array([12345]), pa.decimal128(5, 2)),
    *[(pa.array([1.0]), kind) for kind in (pa.int64(), pa.float32(), pa.decimal128(10, 2), pa.string(), pa.bool_())],
    (pa.array([Decimal("1.105")]), pa.decimal128(10, 2)), (pa.array([Decimal(1)]), pa.int64()),
    *[(pa.array([MOMENT], LOCAL), kind) for kind in (pa.int64(), pa.date32(), pa.string())],
    *[(pa.array([date(2026, 1, 1)]), kind) for kind in (pa.int32(), pa.int64(), INSTANT, pa.string())],
    *[(pa.array([True]), kind) for kind in (pa.int32(), pa.string(), pa.float64())],
    *[(pa.array(["1"]), kind) for kind in (pa.int64(), pa.float64(), INSTANT, pa.date32(), pa.bool_())],
    (pa.array([2**62], pa.timestamp("s")), INSTANT), (pa.array([b"\xff"]), pa.string()),
    (pa.array([[Decimal("1.1")]]), pa.list_(pa.float64())), (pa.array([[1]]), pa.list_(INSTANT)),
    (pa.array([{"a": 1}]), pa.struct([("a", INSTANT)])), (pa.array([[1]]), pa.int64()),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "wanted", "values"), READ, ids=str)
def test_a_value_is_read_unchanged(stored: pa.Array, wanted: pa.DataType, values: list[Any]):
    found = cast(pa.chunked_array([stored]), wanted)
    assert (found.type, [_plain(one) for one in found.to_pylist()]) == (wanted, values)


@pytest.mark.parametrize(("stored", "wanted"), REFUSED, ids=str)
def test_no_other_value_comes_of_one_that_does_not_fit(stored: pa.Array, wanted: pa.DataType):
    with pytest.raises(pa.ArrowInvalid):
        cast(pa.chunked_array([stored]), wanted).validate(full=True)


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=7, min_value=-(10**20), max_value=10**20)))
def test_a_decimal_is_read_as_its_nearest_double(values: list[Decimal]):
    found = cast(pa.chunked_array([pa.array(values, pa.decimal128(38, 7))]), pa.float64()).to_pylist()
    assert found == [float(Fraction(value)) for value in values]


def _plain(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value
