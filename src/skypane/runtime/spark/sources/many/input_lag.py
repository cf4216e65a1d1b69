"""Status of a query's inputs from its checkpoint, for observers outside the query."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skypane.metrics import BatchMetrics, InputMetrics
from skypane.runtime.receiving.retention import committed, committed_marks
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.sources.many.discovery import discovered, from_text
from skypane.runtime.spark.sources.many.input_metrics import GrowthTracker


def lag_of_inputs(text: str, checkpoint: Path) -> list[InputMetrics]:
    """Return a row for each input of the list `text`: its present extent, and how far committed batches have read it.

    Readers, rates and forecasts are those of the last batch whose metrics include them. The checkpoint is only read.
    Raises CheckpointError if the folder is not a checkpoint, and ConfigError if the list cannot be read.
    """
    at = committed(checkpoint)
    found = discovered(from_text(text), at, committed_marks(checkpoint))
    per_row = {
        name: one.input.per_row(at.get(name, one.first)) for name, one in found.items() if one.last > at.get(name, 0)
    }
    reported = _last_reported(checkpoint)
    rows = GrowthTracker().table(found, per_row, at, at, {})
    return [_with(row, reported.get(row.input)) for row in rows]


def _with(row: InputMetrics, reported: InputMetrics | None) -> InputMetrics:
    """Return a row with the values that only the query knows; from outside, a silent input counts as read."""
    row = replace(row, state="read" if row.state == "silent" else row.state)
    if reported is None:
        return row
    return replace(
        row, reader=reported.reader, rate=reported.rate, forecast=reported.forecast, expected=reported.expected
    )


def _last_reported(checkpoint: Path) -> dict[str, InputMetrics]:
    history = Ledger(DocumentStore.at(checkpoint, "checkpoint").child("skypane")).history(1)
    return {one.input: one for value in history for one in BatchMetrics.from_json(value).inputs}
