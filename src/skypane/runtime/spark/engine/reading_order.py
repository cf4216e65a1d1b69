"""The order in which the rows of a batch are read: Spark marks each row with its unit, tasks report runs, the driver orders them.

A replay may read in another order, if the executors or the files' partitions are others. So runs that decide about the
punctuation are noted before a sink receives anything, and a replay takes those. If it finds none, its sinks have received
nothing that follows from an order.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.metrics import INPUT
from skypane.naming import backticked
from skypane.operators.entry.row_runs import PARTITION_BITS, FilePlace, ReadingOrder, UnitRuns, in_order
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import spark_files
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.source_files import names_files
from skypane.snapshots import from_json, to_json
from skypane.types import CheckpointError, IntArray

log = logging.getLogger(__name__)

UNIT: Final = "_skypane_unit"
"""The column with the unit of a row."""


def marked(whole: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the rows of a stream, which has the columns of `whole`, with the unit of each (row_runs.py)."""
    columns = [backticked(name) for name in rows.columns]
    rows = whole if set(rows.columns) <= set(whole.columns) else rows
    named = dict(rows.dtypes).get(INPUT) == "string"
    name = f"coalesce({backticked(INPUT)}, '')" if named else "''"
    path = "input_file_name()" if names_files(whole) else "''"
    number = f"(shiftleft(crc32(if({path} = '', {name}, {path})), {PARTITION_BITS}) | spark_partition_id())"
    return rows.selectExpr(*columns, f"if({path} = '', {number}, -1 - {number}) AS {UNIT}")


def unmarked(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, IntArray | None]:
    """Return a batch without the column of units, and the units; None if it has no such column."""
    if batch.schema.names[-1:] != [UNIT]:
        return batch, None
    return batch.drop_columns([UNIT]), batch.column(UNIT).to_numpy()


class ReadingOrders:
    """The orders in which the batches of a driver are read."""

    def __init__(self, ledger: Ledger, checkpoint: DocumentStore) -> None:
        self.ledger = ledger
        self.checkpoint = checkpoint
        #: the last batch that Spark has begun before this driver, in Spark's numbers: its sinks may have received it
        self.begun = spark_files.last_begun(checkpoint)
        self._in_turn: bool | None = None
        #: whether the log says already that Spark's record of a batch could not be read
        self.told = False

    def in_turn(self, sparks_batch: int) -> bool:
        """Return whether tasks read files or inputs one after the other, which is so for all batches of a stream."""
        if self._in_turn is None:
            self._in_turn = spark_files.in_turn(self.checkpoint, sparks_batch)
        return self._in_turn


@dataclass(frozen=True, slots=True)
class OrderOfBatch:
    """The order of one batch, for each query by name; `sparks_batch` is its number without the drains before it."""

    orders: ReadingOrders
    batch: int
    sparks_batch: int

    def of(self, query: str, units: Sequence[UnitRuns] | None) -> ReadingOrder | None:
        """Return the order; None if it is not known.

        units   as the tasks have read them; None: not known
        """
        orders, replayed = self.orders, self._is_replayed
        noted = orders.ledger.order(self.batch).get(query) if replayed else None
        if noted is not None:
            return from_json(ReadingOrder, noted)
        if units is None or replayed:
            return None
        try:
            files = self._files(units)
        except (CheckpointError, OSError, ValueError, KeyError, TypeError) as error:  # Spark's record is not there
            if not orders.told:
                orders.told = True
                log.warning(
                    "batch %d: which files it reads is not known, so neither is their order: %r", self.batch, error
                )
            return None
        return None if files is None else in_order(units, files)

    def _files(self, units: Sequence[UnitRuns]) -> dict[int, FilePlace] | None:
        """Return the files by their checksums; None if the rows do not name the files or inputs, which tasks read in turn."""
        orders, batch = self.orders, self.sparks_batch
        if any(one.unit >> PARTITION_BITS == 0 for one in units) and orders.in_turn(batch):
            return None
        if all(one.unit >= 0 for one in units):
            return {}
        files = enumerate(spark_files.files_of(orders.checkpoint, batch))
        return {zlib.crc32(path.encode()): FilePlace(changed, number) for number, (changed, path) in files}

    def note(self, query: str, order: ReadingOrder | None) -> None:
        """Note the order, from which the punctuation follows; that of a replay was noted before."""
        if not self._is_replayed:
            self.orders.ledger.note_order(self.batch, query, to_json(order))

    @property
    def _is_replayed(self) -> bool:
        return self.sparks_batch <= self.orders.begun
