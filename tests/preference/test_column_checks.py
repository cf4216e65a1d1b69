from __future__ import annotations

import pyarrow as pa
import pytest

from skypane.preference.column_checks import column_names, field_of, is_orderable, value_type
from skypane.types import ConfigError


def test_a_column_that_occurs_twice_is_refused():
    schema = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    with pytest.raises(ConfigError, match="column 'a' occurs 2 times"):
        field_of(schema, "a")


def test_a_schema_without_columns():
    with pytest.raises(ConfigError, match="column 'a' does not exist; there are no columns"):
        field_of(pa.schema([]), "a")


@pytest.mark.parametrize(
    "kind",
    [
        pa.null(),
        pa.list_(pa.int64()),
        pa.struct({"x": pa.int64()}),
        pa.map_(pa.string(), pa.int64()),
        pa.month_day_nano_interval(),
        pa.dictionary(pa.int8(), pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_types_without_an_order(kind: pa.DataType):
    assert not is_orderable(kind)


def test_column_names():
    assert column_names("a", "by") == ("a",)
    assert column_names(["b", "a", "b"], "by") == ("b", "a")
    with pytest.raises(ConfigError, match=r"by must name a column, got 3"):
        column_names([3], "by")  # type: ignore[list-item]


def test_dictionaries_are_seen_through():
    assert value_type(pa.dictionary(pa.int8(), pa.string())) == pa.string()
    assert is_orderable(pa.dictionary(pa.int8(), pa.string()))
