"""How the rows of a stream cross into Python: the quickest way, until they show that it does not hold them.

A stage for which there is not enough memory says so by its report: of an exception Spark would make pages of trace.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from skypane.runtime.headroom import FEWER_ROWS, limited
from skypane.runtime.spark.arrow_batches import BYTES, unmarked, ways
from skypane.types import MemoryLimitError

log = logging.getLogger(__name__)

Stage: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Takes the rows of a task, and yields rows of one text, its reports."""

_REPORT = StructType([StructField("report", StringType())])
"""A text would be sent to Java to be read, in every batch."""
_REFUSED: Final = "refused: "
"""What a report begins with that says why a stage has given up; the others are JSON."""
_NOT_ASKED: Final = ""
_INCOMPLETE: Final = pa.RecordBatch.from_arrays([pa.nulls(1, pa.string())], ["report"])


class Crossing:
    """Sends rows of one schema to stages in Python.

    A way that did not hold the rows of one batch is not tried again. That is known in this process alone: it says how rows
    go, and nothing of what comes of them.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._ways = list(ways(schema))
        #: the bound on the bytes of a batch that the session has set itself; None: Spark's default
        self._bound: str | None = _NOT_ASKED

    def run(self, rows: DataFrame, stage: Stage, forget: Callable[[list[str]], None]) -> list[str]:
        """Return what the tasks of a stage report, having seen every row.

        forget   called with the reports of tasks that have not all seen every row, before all of them run again
        """
        while True:
            told = self._sent(rows, _Refusing(stage))
            reports = [report for report in told if report is not None]
            for refused in (report for report in reports if report.startswith(_REFUSED)):
                raise MemoryLimitError(refused.removeprefix(_REFUSED))
            if len(reports) == len(told):
                return reports
            forget(reports)
            log.info("rows with more than %d bytes of text: sent another way from now on", self._ways.pop(0).room)

    def _sent(self, rows: DataFrame, stage: Stage) -> list[str | None]:
        way, spark = self._ways[0], rows.sparkSession
        if self._bound == _NOT_ASKED:  # once: from then on the session says what the last way has set
            self._bound = spark.conf.get(BYTES, None)
        way.settle(spark, self._bound)
        if way.texts:
            rows, stage = way.marked(rows), _Unmarking(stage)
        return [row.report for row in rows.mapInArrow(stage, _REPORT).collect()]


@dataclass(frozen=True, slots=True)
class _Refusing:
    """A stage that says, in place of a report, that it has not enough memory; travels to the workers.

    Rows are left unread then, so Spark ends the worker, and what it holds is free.
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
    """A stage whose rows come marked; travels to the workers. A null among its reports says that it has not seen all rows."""

    stage: Stage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _Rows(batches)
        yield from self.stage(rows)
        if not rows.complete:
            yield _INCOMPLETE


class _Rows:
    """Batches of marked rows up to the first mark; the rest is read, as a worker that leaves rows unread is ended."""

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
