"""Sizes of the Arrow batches in which Spark transfers rows to Python.

Since 4.1 Spark adds up the bytes of a batch after every row, to keep it within 64 MB; this takes two fifths of the time
that it spends on a row. If rows have a fixed width, a maximum number of rows keeps the same bound at no cost. Texts
know their length, so a check of each row keeps it too: the texts of a row are *short* if together they have at most
`room` bytes. A row with longer texts is sent without them, and with a mark (engine/arrow_transfer.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.naming import backticked

ROWS: Final = 100_000
"""Maximum rows per batch; Spark's default of 10,000 costs a third more (measure/bench/streaming.py)."""
ROOMS: Final = (4 << 10, 64 << 10)
"""Bytes per row that short texts may have, for batches of 16,000 rows and of 1,000; the latter are an eighth slower."""

BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
RECORDS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"

_MOST_BYTES: Final = 64 << 20
"""Bytes per batch: Spark's own default."""
_UNMEASURED: Final = 2**31 - 1
_OFFSET_BITS: Final = 32
"""Bits of a text besides its bytes: its offset."""


@dataclass(frozen=True, slots=True)
class ArrowBatches:
    """Batches with a maximum number of rows.

    rows      the maximum
    measured  whether Spark adds up the bytes of each batch
    texts     columns of texts and binaries that are sent only if they are short
    room      bytes that these columns may have together in a row
    """

    rows: int
    measured: bool
    texts: tuple[str, ...] = ()
    room: int = 0

    def settle(self, spark: SparkSession, bound: str | None = None) -> None:
        """Configure a session to cut rows in this way.

        bound   the session's own bound on the bytes of measured batches; None: Spark's default
        """
        spark.conf.set(RECORDS, self.rows)
        if not self.measured:
            spark.conf.set(BYTES, _UNMEASURED)
        elif bound is None:
            spark.conf.unset(BYTES)  # an earlier transfer without measuring may have removed the bound
        else:
            spark.conf.set(BYTES, bound)

    def marked(self, rows: DataFrame) -> DataFrame:
        """Return the rows with a mark as last column: whether the row's texts are too long and are left out.

        Written as SQL text, which takes one call to Java; the same tree of Column objects takes thirty.
        """
        lengths = (f"coalesce(octet_length({backticked(name)}), 0L)" for name in self.texts)
        long = f"{' + '.join(lengths)} > {self.room}"
        mark = f"{max(rows.columns, key=len)}_"  # longer than every other name, hence unique
        return rows.selectExpr(*(self._short(name, long) for name in rows.columns), f"{long} AS {backticked(mark)}")

    def _short(self, name: str, long: str) -> str:
        column = backticked(name)
        # An empty text, because a null could change the nullability of the column and so its Arrow schema.
        return f"if({long}, '', {column}) AS {column}" if name in self.texts else column


def unmeasured(schema: pa.Schema) -> dict[str, str]:
    """Return the settings with which Spark sends rows of `schema` without adding up bytes; none if their width is not fixed."""
    way = ways(schema)[0]
    return {} if way.measured or way.texts else {RECORDS: str(way.rows), BYTES: str(_UNMEASURED)}


def ways(schema: pa.Schema) -> tuple[ArrowBatches, ...]:
    """Return the ways to send rows of `schema`, fastest first; the last one can send any rows."""
    texts = tuple(field.name for field in schema if _is_text(field.type))
    measured = ArrowBatches(ROWS, measured=True)
    try:
        bits = sum(1 + (_OFFSET_BITS if _is_text(kind) else kind.bit_width) for kind in schema.types)
    except ValueError:  # nested values have no fixed width
        return (measured,)
    if not texts:
        return (ArrowBatches(_rows(bits / 8), measured=False),)
    return (*(ArrowBatches(_rows(bits / 8 + room), measured=False, texts=texts, room=room) for room in ROOMS), measured)


def unmarked(batch: pa.RecordBatch) -> pa.RecordBatch | None:
    """Return a batch of marked rows without the column of marks, or None if a row was sent without its texts."""
    *columns, long = batch.columns
    if long.true_count:
        return None
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(batch.schema)[:-1], batch.schema.metadata))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _rows(width: float) -> int:
    """Return the maximum number of rows of `width` bytes in a batch."""
    return max(1, min(ROWS, int(_MOST_BYTES / max(width, 1))))
