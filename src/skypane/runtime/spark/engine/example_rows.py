"""Up to three example rows of a cause, as texts: they are read from a batch once more when the cause begins.

Only the columns by which a row is judged are shown, without logins of addresses: the log may be read by others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from skypane.addresses import without_secrets
from skypane.naming import shortened
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.reject_reasons import REASON
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.spark_schema import from_spark
from skypane.types import TICKS_PER_SECOND
from skypane.wording import exact_stamp

MOST: Final = 3
LENGTH: Final = 60
"""Characters of a value."""


@dataclass(frozen=True, slots=True)
class ExampleStage:
    """Yields the first rows of a task that are rejected for a reason, as texts; travels to workers."""

    gate: EntryRules
    reason: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: list[str] = []
        for batch in from_spark(batches):
            if len(found) < MOST:
                for rejected in self.gate.split(pa.Table.from_batches([batch])).rejection.rows:
                    rows = rejected.filter(pc.field(REASON) == self.reason).slice(0, MOST - len(found))
                    found += self._texts(rows)
        yield pa.RecordBatch.from_pydict({"report": [json.dumps(found)]})

    def _texts(self, rows: pa.Table) -> list[str]:
        gate = self.gate
        names = dict.fromkeys([gate.time, *([gate.source] if gate.source else []), *gate.required])
        times = rows.column(gate.time)
        # Not as values of Python, which has no years after 9999.
        ticks, per_second = times.cast(pa.int64()).to_pylist(), TICKS_PER_SECOND[times.type.unit]
        values = {name: rows.column(name).to_pylist() for name in names if name != gate.time}
        values[gate.time] = [None if tick is None else exact_stamp(tick * 1_000_000 // per_second) for tick in ticks]
        return [", ".join(f"{name}={_shown(values[name][at])}" for name in names) for at in range(rows.num_rows)]


def _shown(value: object) -> str:
    return "null" if value is None else shortened(without_secrets(str(value)), LENGTH)


def examples(rows: DataFrame, stage: ExampleStage, transfer: ArrowTransfer) -> tuple[str, ...]:
    """Return up to MOST of the rows that a gate rejects for a reason."""
    reports = transfer.run(rows, stage, lambda _: None)
    return tuple(text for report in reports for text in json.loads(report))[:MOST]
