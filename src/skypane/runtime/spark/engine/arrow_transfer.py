"""Transfer of a stream's rows to Python, in the fastest way that can hold them.

A stage without enough memory reports so as a value, because Spark would turn an exception into pages of trace.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from skypane.runtime.memory_headroom import FEWER_ROWS, limited
from skypane.runtime.spark.arrow_batches import BYTES, unmarked, ways
from skypane.runtime.spark.engine.rows_in_driver import few_rows
from skypane.types import MemoryLimitError

log = logging.getLogger(__name__)

Stage: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Receives the rows of a task, and yields its reports: rows of one text each."""

_REPORT = StructType([StructField("report", StringType())])
"""As an object: a schema as text would be sent to Java for parsing in every batch."""
_REFUSED: Final = "refused: "
"""Prefix of a report that contains the reason why a stage has failed; the other reports are JSON."""
_UNREAD: Final = ""
_INCOMPLETE: Final = pa.RecordBatch.from_arrays([pa.nulls(1, pa.string())], ["report"])


class ArrowTransfer:
    """Sends rows of one schema to stages in Python.

    A way that could not hold the rows of one batch is not tried again. Only this process remembers that; the way of
    sending rows does not affect the results.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._ways = list(ways(schema))
        #: the session's own bound on the bytes of a batch; None: Spark's default
        self._bound: str | None = _UNREAD

    def run(
        self, rows: DataFrame, stage: Stage, forget: Callable[[list[str]], None], *, in_driver: bool = False
    ) -> list[str]:
        """Return the reports of a stage whose tasks have seen every row.

        forget      called with the reports when some task has not seen every row, before all tasks run again
        in_driver   whether the driver runs the stage, as one task; rows that are too many for it are sent to workers

        Raises MemoryLimitError if a task did not have enough memory.
        """
        if in_driver and (table := few_rows(rows)) is not None:
            return _in_driver(table, stage)
        while True:
            answers = self._sent(rows, _Refusing(stage))
            reports = [report for report in answers if report is not None]
            for refused in (report for report in reports if report.startswith(_REFUSED)):
                raise MemoryLimitError(refused.removeprefix(_REFUSED))
            if len(reports) == len(answers):
                return reports
            forget(reports)
            log.info("rows with more than %d bytes of text are sent in another way from now on", self._ways.pop(0).room)

    def _sent(self, rows: DataFrame, stage: Stage) -> list[str | None]:
        way, spark = self._ways[0], rows.sparkSession
        if self._bound == _UNREAD:  # read only once, because settle() changes it
            self._bound = spark.conf.get(BYTES, None)
        way.settle(spark, self._bound)
        if way.texts:
            rows, stage = way.marked(rows), _Unmarking(stage)
        return [row.report for row in rows.mapInArrow(stage, _REPORT).collect()]


def _in_driver(table: pa.Table, stage: Stage) -> list[str]:
    """Return the reports of a stage that runs here."""
    with limited("the rows of a batch", FEWER_ROWS):
        return [report for reports in stage(table.to_batches()) for report in reports["report"].to_pylist()]


@dataclass(frozen=True, slots=True)
class _Refusing:
    """A stage that yields a refusal in place of a report when it has not enough memory; travels to the workers.

    The remaining rows are then left unread, so Spark ends the worker and its memory is freed.
    """

    stage: Stage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            with limited("the rows of a task", FEWER_ROWS):
                yield from self.stage(batches)
        except MemoryLimitError as error:
            yield pa.RecordBatch.from_pydict({"report": [f"{_REFUSED}{error}"]})


@dataclass(frozen=True, slots=True)
class _Unmarking:
    """A stage that receives marked rows; travels to the workers.

    A null among its reports means that it has not seen all rows.
    """

    stage: Stage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _Rows(batches)
        yield from self.stage(rows)
        if not rows.complete:
            yield _INCOMPLETE


class _Rows:
    """Batches of marked rows up to the first mark; later ones are read too, as Spark ends workers that leave rows."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.complete = True

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            rows = unmarked(batch) if self.complete else None
            if rows is None:
                self.complete = False
            else:
                yield rows
