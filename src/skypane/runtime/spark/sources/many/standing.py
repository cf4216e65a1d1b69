"""How the inputs of a query stand, as its checkpoint tells, for those who look from outside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skypane.metrics import BatchMetrics, InputSeen
from skypane.runtime.receiving.retention import committed
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.sources.many.listing import discovered, from_text
from skypane.runtime.spark.sources.many.watching import Watch
from skypane.runtime.spark.store import Store


def standing(text: str, checkpoint: Path) -> list[InputSeen]:
    """Return a row for each input of the list `text`: what it has now, and how far committed batches have read it.

    Readers, rates and forecasts are those of the last batch whose metrics tell of them. Changes nothing; raises
    CheckpointError for a folder that is no checkpoint, ConfigError for a list that cannot be read.
    """
    at = committed(checkpoint)
    found = discovered(from_text(text), at)
    per_row = {
        name: one.input.per_row(at.get(name, one.first)) for name, one in found.items() if one.last > at.get(name, 0)
    }
    told = _last_told(checkpoint)
    rows = Watch().table(found, per_row, at, at, {})
    return [_with(row, told.get(row.input)) for row in rows]


def _with(row: InputSeen, told: InputSeen | None) -> InputSeen:
    """Return a row with what only the query knows; from outside, what has no more to read is read."""
    row = replace(row, state="read" if row.state == "silent" else row.state)
    if told is None:
        return row
    return replace(row, reader=told.reader, rate=told.rate, forecast=told.forecast)


def _last_told(checkpoint: Path) -> dict[str, InputSeen]:
    history = Ledger(Store.at(checkpoint, "checkpoint").child("skypane")).history(1)
    return {one.input: one for value in history for one in BatchMetrics.from_json(value).inputs}
