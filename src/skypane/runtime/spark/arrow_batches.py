"""How Spark cuts rows into Arrow batches on their way into Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa
from pyspark.sql import SparkSession

ROWS: Final = 100_000
"""Rows per batch: the default of 10,000 costs a third more (bench/streaming.py)."""

_MOST_BYTES: Final = 64 << 20
"""Bytes per batch: Spark's own default."""

_UNMEASURED: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ArrowBatches:
    """How large batches are: so many rows at most, and `measured` says whether Spark adds up their bytes too.

    Since 4.1 Spark does so after every row, which is two fifths of all that it does for a row. Where the width of rows is
    fixed, a number of rows keeps the same bound for nothing.
    """

    rows: int
    measured: bool

    @classmethod
    def of(cls, schema: pa.Schema) -> Self:
        """Return the batches for rows of `schema`."""
        try:
            width = sum(field.type.bit_width + 1 for field in schema) / 8  # a bit says whether a value is there
        except ValueError:  # a text is as long as it is
            return cls(ROWS, measured=True)
        return cls(max(1, min(ROWS, int(_MOST_BYTES / max(width, 1)))), measured=False)

    def settle(self, spark: SparkSession) -> None:
        """Have a session cut rows so; where they are measured, by the bound that the session has."""
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", self.rows)
        if not self.measured:
            spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", _UNMEASURED)
