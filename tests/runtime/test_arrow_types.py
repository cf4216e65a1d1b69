"""Whatever layout a file's values have, a replay hands them over in the one that Spark expects of its own types."""

from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from skypane.runtime.spark.sources.arrow_types import as_in_spark
from skypane.types import ConfigError

VALUES = [
    pa.array(["a", None], pa.large_string()),
    pa.array(["a", None], pa.string_view()),
    pa.array([b"a", None], pa.large_binary()),
    pa.array([b"ab", None], pa.binary(2)),
    pa.array([b"a", None], pa.binary_view()),
    pa.array(["a", None]).dictionary_encode(),
    pa.array(["a", None], pa.large_string()).dictionary_encode(),
    *(pa.array([7, None], kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.int8(), pa.int16())),
    *(
        pa.array([7, None], pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "Asia/Tokyo")
    ),
    pa.array([7, None], pa.date64()),
    pa.array([7, None], pa.date32()),
    pa.array([7, None], pa.time32("s")),
    pa.array([7, None], pa.duration("s")),
    pa.array([1.5, None], pa.float16()),
    pa.array([Decimal("1.5"), None], pa.decimal256(10, 2)),
    pa.array([[1], None], pa.large_list(pa.int32())),
    pa.array([["a"], None], pa.list_(pa.large_string())),
    pa.array([["a", "b"], None], pa.list_(pa.large_string(), 2)),
    pa.array([{"x": ["a"]}, None], pa.struct([("x", pa.large_list(pa.large_string()))])),
    pa.array([[("k", "v")], None], pa.map_(pa.large_string(), pa.large_string())),
    pa.array([None, None], pa.null()),
]


@pytest.mark.parametrize("column", VALUES, ids=lambda column: str(column.type))
def test_values_come_in_the_layout_that_spark_expects(column):
    table = pa.table({"x": column})
    schema = as_in_spark(table.schema)
    assert schema.equals(to_arrow_schema(from_arrow_schema(schema, prefer_timestamp_ntz=True), timezone="UTC"))
    handed_over = table.cast(schema, safe=False)
    handed_over.validate(full=True)
    assert handed_over.column("x").is_null().to_pylist() == column.is_null().to_pylist()


@pytest.mark.parametrize(
    "kind", [pa.month_day_nano_interval(), pa.decimal256(60, 2), pa.list_(pa.month_day_nano_interval())], ids=str
)
def test_a_type_that_spark_does_not_have_is_named_with_its_column(kind):
    with pytest.raises(
        ConfigError, match=r"column 'x' is .*, a type that Spark does not have; cast it, or leave it out"
    ):
        as_in_spark(pa.schema([("x", kind)]))
