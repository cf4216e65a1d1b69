"""Rejected rows that come a second time: read from the folder of the late sink, repaired, and kept until their batch.

The rows are written to a file among the partials before the ledger notes the readmission, so a readmission that a kill
has interrupted is repeated with the same rows, whatever the repair would do now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from skypane.operators.entry.raw_text import TEXT, repacked
from skypane.operators.entry.reject_reasons import REASON
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.ledger import PendingReadmission
from skypane.runtime.spark.engine.partials import PartialReader, attempt_name
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.folder_owner import REJECTED
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.types import ConfigError

READMITTED: Final = 99_995
"""Task number, in a file's name, of the rows that come a second time."""

Repair: TypeAlias = Callable[[DataFrame], DataFrame]

_PART = re.compile(rf"{REJECTED}-(\d{{12}})-\d{{5}}\.parquet")


def readmitted_before(state: object) -> Mapping[str, int]:
    """Return the last batch whose rows were readmitted, by reason; raise ConfigError unless one query answers windows."""
    if not isinstance(state, WindowState):
        raise ConfigError(
            "rows can be readmitted to one query over windows; not to a continuous skyline, whose updates cannot be taken "
            "back, and not to several queries (sp.streams), whose rejected rows may have entered some of them"
        )
    return state.readmitted


def folder_of(late: Sink | None) -> DocumentStore:
    """Return the folder of rejected rows; raise ConfigError if there is none from which they can be read."""
    if not isinstance(late, Directory) or late.format != "parquet":
        raise ConfigError("readmit() reads the rejected rows from a folder of parquet: name one as late=, or in Amend")
    return late.store


def rejected(folder: DocumentStore, schema: pa.Schema, reason: str, after: int, through: int) -> pa.Table:
    """Return the rows of `schema`, that of late rows, without their reason, that the batches (after, through] have rejected for `reason`.

    Raises ConfigError, naming the reasons of the rows in these batches, if there is no such row.
    """
    parts = ((int(match[1]), match[0]) for name in sorted(folder.names()) if (match := _PART.fullmatch(name)))
    names = [name for batch, name in parts if after < batch <= through]
    rows = pa.concat_tables([schema.empty_table(), *(folder.read_parquet(name, schema) for name in names)])
    found = rows.filter(pc.equal(rows[REASON], reason))
    if not found.num_rows:
        reasons = ", ".join(sorted(repr(known) for known in pc.unique(rows[REASON]).to_pylist()))
        raise ConfigError(
            f"no rows to readmit: none of those that came since the last readmission were rejected for {reason!r}; "
            f"{f'there are rows with the reasons {reasons}' if reasons else 'there are no rejected rows'}"
        )
    return found.drop_columns(REASON)


def repaired(spark: SparkSession, rows: pa.Table, repair: Repair | None, needed: Sequence[str]) -> pa.Table:
    """Return the rows after `repair`, as a source sends them; raise ConfigError if it returns other columns, or more rows.

    needed   the columns that it must return; what it leaves out of the raw text is null
    """
    rows = rows if repair is None else _repaired(spark, rows, repair, needed)
    return repacked(rows) if TEXT in rows.column_names and TEXT not in needed else rows


def _repaired(spark: SparkSession, rows: pa.Table, repair: Repair, needed: Sequence[str]) -> pa.Table:
    try:
        frame = repair(spark.createDataFrame(rows.combine_chunks(), spark_schema(rows.schema)))
        lacking = [name for name in needed if name not in frame.columns]
        if lacking:
            raise ConfigError(f"repair must return the columns of the rows; {', '.join(lacking)} are missing")
        fixed = frame.select(*(name for name in rows.column_names if name in frame.columns)).toArrow()
    except PySparkException as error:
        raise ConfigError(f"repair fails: {cause(error)}") from error
    if fixed.num_rows > rows.num_rows:
        raise ConfigError(f"repair must not add rows: it got {rows.num_rows} and returned {fixed.num_rows}")
    try:
        for gone in (field for field in rows.schema if field.name not in fixed.column_names):
            fixed = fixed.append_column(gone, pa.nulls(fixed.num_rows, gone.type))
        return fixed.select(rows.column_names).cast(rows.schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise ConfigError(f"repair must return the types of the columns: {error}") from error


def kept(store: DocumentStore, rows: pa.Table, reason: str, through: int) -> PendingReadmission:
    """Write the rows to a file of `store`, for the batch after `through`."""
    (ref,) = partials.write(store, attempt_name(through + 1, READMITTED), [rows])
    store.sync(ref.file, "")
    return PendingReadmission(reason, through, rows.num_rows, ref)


def again(spark: SparkSession, store: DocumentStore, readmission: PendingReadmission) -> DataFrame:
    """Return the rows of a readmission."""
    rows: Any = PartialReader(store)(readmission.ref).combine_chunks()
    return spark.createDataFrame(rows, spark_schema(rows.schema))
