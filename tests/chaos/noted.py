"""A folder of answers that notes what it received: a sink that gets a batch again must get the same batch."""

from __future__ import annotations

import hashlib
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from skypane.operators.stay_columns import expanded
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.directory import Directory


@dataclass(frozen=True)
class Noted(Directory):
    """A folder of answers, and beside the local folder `notes` a digest of what it received, by batch."""

    _: KW_ONLY
    notes: Path

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        table = expanded(answers.table()) if answers.holds_stays else answers.table()  # stays may be cut otherwise
        rows = sorted(map(repr, table.to_pylist()))
        digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
        notes = _notes(self.notes)
        notes.mkdir(parents=True, exist_ok=True)
        (notes / f"{batch_id}-{digest}").touch()
        super().write(spark, answers, batch_id)


def deliveries(folder: Path) -> list[Path]:
    """Return a file for each batch and what a folder received under its number, "number-digest"."""
    return sorted(_notes(folder).iterdir()) if _notes(folder).is_dir() else []


def _notes(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-deliveries")
