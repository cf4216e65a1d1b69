"""Status of many inputs, which their source reports through Spark's query progress."""

from __future__ import annotations

import time

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from skypane.metrics import InputReport
from skypane.runtime.spark.known_backlog import value_of
from skypane.runtime.spark.sources.many.input_metrics import from_json

SCHEMA = pa.schema([
    ("input", pa.string()),
    ("reader", pa.int64()),
    ("rate", pa.float64()),
    ("forecast", pa.float64()),
    ("lag", pa.int64()),
    ("offset", pa.int64()),
    ("state", pa.string()),
    ("waiting", pa.float64()),
    ("expected", pa.float64()),
])  # fmt: skip


EVERY = 2.0
"""Seconds between reads of the progress from within batches; with 300 inputs a read takes a tenth of a small batch."""


class InputStatus:
    """Status of the query's inputs after the last micro-batch; empty for a query of other sources.

    The first progress shows whether the query has many inputs; if not, progress is not read again.
    """

    def __init__(self) -> None:
        #: the query, once it is known
        self.query: StreamingQuery | None = None
        self._has_inputs = True
        self._last: tuple[float, InputReport] | None = None

    def __call__(self) -> InputReport:
        """Return a report at most EVERY seconds old, for batches, of which there may be many a second."""
        now = time.monotonic()
        if self._last is None or now - self._last[0] >= EVERY:
            report = self.now()
            self._last = (now, report) if report.inputs else None
            return report
        return self._last[1]

    def now(self) -> InputReport:
        """Return the current report."""
        if self.query is None or not self._has_inputs:
            return InputReport()
        progress = self.query.lastProgress
        if progress is None:
            return InputReport()
        sources = progress["sources"]
        reports = [one for source in sources if (one := from_json(value_of(source.get("latestOffset")))) is not None]
        # A batch that is replayed after a start is not planned, so its progress has no report.
        self._has_inputs = bool(reports) or any("PythonMicroBatchStream" in source["description"] for source in sources)
        return InputReport(
            tuple(row for report in reports for row in report.inputs),
            tuple(decision for report in reports for decision in report.decisions),
        )

    def table(self) -> pa.Table:
        """Return the inputs of the current report as a table."""
        rows = self.now().inputs
        return pa.table({name: [getattr(row, name) for row in rows] for name in SCHEMA.names}, schema=SCHEMA)
