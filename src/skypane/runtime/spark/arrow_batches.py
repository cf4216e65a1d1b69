"""How Spark cuts rows into Arrow batches on their way into Python.

Since 4.1 Spark adds up the bytes of a batch after every row, so that it holds 64 MB at most; that is two fifths of all that it
does for a row. Where the width of rows is fixed, a number of rows keeps the same bound for nothing. A text knows how long it
is, so a look at each row keeps it too: texts are *short* if those of a row have no more bytes than there is room for. Of a row
with longer ones the texts stay behind, and a mark goes in their place (engine/crossing.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.naming import backticked

ROWS: Final = 100_000
"""Rows per batch: the default of 10,000 costs a third more (bench/streaming.py)."""
ROOMS: Final = (4 << 10, 64 << 10)
"""Bytes per row that short texts may have: in batches of 16,000 rows and of 1,000, which is an eighth slower."""

BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"

_MOST_BYTES: Final = 64 << 20
"""Bytes per batch: Spark's own default."""
_UNMEASURED: Final = 2**31 - 1
_OFFSET_BITS: Final = 32
"""What a text has beside its bytes: where it begins."""


@dataclass(frozen=True, slots=True)
class ArrowBatches:
    """Batches of so many rows at most; `measured` says whether Spark adds up their bytes.

    texts   columns of texts and binaries, sent as short ones
    room    bytes that they may have together in a row
    """

    rows: int
    measured: bool
    texts: tuple[str, ...] = ()
    room: int = 0

    def settle(self, spark: SparkSession, bound: str | None = None) -> None:
        """Have a session cut rows so; where they are measured, by `bound`, what it had set itself, or by Spark's default."""
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", self.rows)
        if not self.measured:
            spark.conf.set(BYTES, _UNMEASURED)
        elif bound is None:
            spark.conf.unset(BYTES)  # else what was sent unmeasured before would leave it without a bound
        else:
            spark.conf.set(BYTES, bound)

    def marked(self, rows: DataFrame) -> DataFrame:
        """Return the rows with one more column, the last: whether the row is sent without its texts, as they are too long.

        In SQL: a text is one call of Java's, and a tree of columns thirty.
        """
        lengths = (f"coalesce(octet_length({backticked(name)}), 0L)" for name in self.texts)
        long = f"{' + '.join(lengths)} > {self.room}"
        mark = f"{max(rows.columns, key=len)}_"  # no other column is called so
        return rows.selectExpr(*(self._short(name, long) for name in rows.columns), f"{long} AS {backticked(mark)}")

    def _short(self, name: str, long: str) -> str:
        column = backticked(name)
        # Not null in place of a text: that would change whether the column may be null, and with it the schema in Arrow.
        return f"if({long}, '', {column}) AS {column}" if name in self.texts else column


def ways(schema: pa.Schema) -> tuple[ArrowBatches, ...]:
    """Return how rows of `schema` may be sent, the quickest way first; the last one holds whatever comes."""
    texts = tuple(field.name for field in schema if _is_text(field.type))
    measured = ArrowBatches(ROWS, measured=True)
    try:
        bits = sum(1 + (_OFFSET_BITS if _is_text(kind) else kind.bit_width) for kind in schema.types)
    except ValueError:  # values that hold others are as long as these
        return (measured,)
    if not texts:
        return (ArrowBatches(_rows(bits / 8), measured=False),)
    return (*(ArrowBatches(_rows(bits / 8 + room), measured=False, texts=texts, room=room) for room in ROOMS), measured)


def unmarked(batch: pa.RecordBatch) -> pa.RecordBatch | None:
    """Return a batch of marked rows without the marks, or None if there is one."""
    *columns, long = batch.columns
    if long.true_count:
        return None
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(batch.schema)[:-1], batch.schema.metadata))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _rows(width: float) -> int:
    """Return how many rows of `width` bytes a batch may have."""
    return max(1, min(ROWS, int(_MOST_BYTES / max(width, 1))))
