"""The lines that Spark's own readers of csv and JSON cannot parse: kept for the late sink, as those of sp.inputs are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from skypane.naming import backticked
from skypane.operators.entry.raw_text import FORMAT, RAW, head_of
from skypane.runtime.row_parser import FORMATS, RowFormat
from skypane.runtime.spark.spark_schema import struct_of

_COLUMN: Final = "_corrupt_record"
_OPTION: Final = "columnnameofcorruptrecord"
_CUTTING: Final = {"sep", "delimiter", "quote", "escape", "comment", "linesep", "multiline", "encoding", "charset"}
"""Options with which skypane's parser reads a line in another way than Spark."""


@dataclass(frozen=True)
class CorruptRecords:
    """The schema with which Spark reads lines and gives those that do not parse, and the column that has them.

    form   how skypane parses such a line; None if it cannot
    """

    schema: StructType
    column: str
    form: str | None
    own: bool

    def kept(self, rows: DataFrame) -> DataFrame:
        """Return rows that were read with this schema, with the lines as the late sink takes them."""
        told = [sf.col("_metadata.file_path").alias("raw_file"), sf.lit("utf-8").alias("raw_encoding")]
        told += [] if self.form is None else [sf.lit(self.form).alias(FORMAT)]
        text = sf.col(backticked(self.column))
        raw = sf.when(
            text.isNotNull(), sf.concat(sf.lit(head_of("")), sf.to_json(sf.struct(*told)), sf.lit("\n"), text)
        )
        rows = rows.withColumn(RAW, raw)
        return rows.drop(self.column) if self.own else rows


def corrupt_records(form: str, schema: str | None, options: Mapping[str, str]) -> CorruptRecords | None:
    """Return how the lines are kept that Spark cannot parse; None if it reads no lines, or keeps none of these."""
    given = {name.lower(): value for name, value in options.items()}
    if form not in FORMATS or schema is None or given.get("mode", "permissive").lower() != "permissive":
        return None
    columns, name = struct_of(schema), given.get(_OPTION, _COLUMN)
    if RAW in columns.names:
        return None
    layout = None if _CUTTING & given.keys() else RowFormat(form, None, tuple(columns.names)).form
    own = name not in columns.names
    return CorruptRecords(columns.add(StructField(name, StringType())) if own else columns, name, layout, own)
