"""Whatever layout a file's values have, a replay hands them over in the one that Spark expects of its own types."""

from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from skypane.runtime.spark.sources.arrow_types import as_in_spark
from skypane.runtime.spark.spark_schema import _SENT, arrow_schema, by_a_job
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


@pytest.mark.core
@pytest.mark.parametrize("large", ["false", "true"])
def test_the_schema_that_is_known_is_the_one_in_which_spark_sends_rows(large: str, spark: SparkSession):
    """Each type is in it, nullable and not, alone and beside one that is not in the table."""
    known: list[DataType] = [*_SENT, DecimalType(3, 0), DecimalType(38, 10)]
    others: list[DataType] = [
        StringType("UNICODE_CI"), DayTimeIntervalType(), ArrayType(StringType()),
        MapType(StringType(), TimestampType()), StructType([StructField("x", TimestampType())]),
    ]  # fmt: skip
    columns = [StructField(f"a. {index}", kind, nullable=bool(index % 2)) for index, kind in enumerate(known)]
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large)
    try:
        for more in ([], *([StructField("other", kind)] for kind in others)):
            schema = StructType([*columns, *more])
            rows = spark.createDataFrame([], schema)
            assert arrow_schema(rows).equals(by_a_job(spark, rows.schema), check_metadata=True)  # the session is in UTC
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
