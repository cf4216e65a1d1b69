"""The digest of a batch knows the batch again, however its rows are ordered and divided, and no other."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.runtime.spark.sinks.rows_digest import rows_digest

SCHEMA = pa.schema([
    ("start", pa.timestamp("us", "UTC")), ("city", pa.string()), ("n", pa.int64()), ("price", pa.float64()),
    ("exact", pa.decimal128(6, 2)), ("list", pa.list_(pa.int64())), ("day", pa.date32()), ("yes", pa.bool_()),
    ("bytes", pa.binary()),
])  # fmt: skip
ROWS = st.lists(
    st.fixed_dictionaries({
        "start": st.none() | st.datetimes(timezones=st.just(UTC)),
        "city": st.none() | st.text(max_size=3),
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "price": st.none() | st.floats(),
        "exact": st.none() | st.decimals(-9999, 9999, places=2),
        "list": st.none() | st.lists(st.none() | st.integers(0, 2), max_size=2),
        "day": st.none() | st.dates(),
        "yes": st.none() | st.booleans(),
        "bytes": st.none() | st.binary(max_size=2),
    }),
    max_size=8,
)  # fmt: skip


@given(rows=ROWS, data=st.data())
def test_it_does_not_depend_on_the_order_of_the_rows_or_on_their_parts(
    rows: list[dict[str, object]], data: st.DataObject
):
    table = pa.Table.from_pylist(rows, SCHEMA)
    order = data.draw(st.permutations(range(len(rows))))
    cut = data.draw(st.integers(0, len(rows)))
    moved = pa.Table.from_pylist([rows[at] for at in order], SCHEMA)
    assert rows_digest([moved.slice(0, cut), moved.slice(cut)]) == rows_digest([table])


ROW: dict[str, object] = {
    "start": datetime(2026, 1, 1, tzinfo=UTC), "city": "", "n": 0, "price": 0.0, "exact": Decimal(0), "list": [],
    "day": date(1970, 1, 1), "yes": False, "bytes": b"",
}  # fmt: skip


@pytest.mark.parametrize("name", ROW)
def test_a_null_and_each_changed_value_have_another_digest(name: str):
    def digest(row: dict[str, object]) -> str:
        return rows_digest([pa.Table.from_pylist([row], SCHEMA)])

    others = {"start": datetime(2026, 1, 2, tzinfo=UTC), "city": "a", "n": 1, "price": 0.5, "exact": Decimal("0.01"),
              "list": [None], "day": date(1970, 1, 2), "yes": True, "bytes": b"\0"}  # fmt: skip
    found = {digest(ROW | {name: value}) for value in (ROW[name], None, others[name])}
    assert len(found) == 3


def test_values_that_change_places_are_another_digest():
    def digest(*rows: tuple[str, int]) -> str:
        return rows_digest([pa.table({"city": [city for city, _ in rows], "n": [n for _, n in rows]})])

    assert digest(("Oslo", 1), ("Rome", 2)) != digest(("Oslo", 2), ("Rome", 1))
    assert digest(("Oslo", 1), ("Oslo", 1)) != digest(("Oslo", 1))
