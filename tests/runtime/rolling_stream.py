"""A stream of a row a batch whose answers wait for their file: the engine's shell, ledger, outbox and folder are the real ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.runtime.starts import PLAN, Kept, outcome_of, settings_of

from skypane.control.parallelism import Workers
from skypane.operators.entry.reject_reasons import REASON
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import outbox, shell
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.engine.shell import Engine
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.sink_arguments import Sinks

SPARK = cast(
    "SparkSession", SimpleNamespace(sparkContext=None, createDataFrame=lambda *_: SimpleNamespace(sparkSession=None))
)
ROWS = cast("DataFrame", SimpleNamespace(sparkSession=SPARK))
ANSWERS = pa.schema([("batch", pa.int64()), ("row", pa.int64())])
REJECTED = pa.schema([("batch", pa.int64()), (REASON, pa.string())])
"""The columns of the rows that the program answers and rejects."""


class Clock:
    """A clock that stands still unless it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(outbox, "time", SimpleNamespace(monotonic=lambda: self.seconds))
            yield


@dataclass(frozen=True)
class Scripted:
    """A program that answers `answers[n]` rows in batch n, and rejects a row in each third batch.

    in_files   whether the rows of a batch are in files of workers, two if there are two rows
    """

    answers: Mapping[int, int]
    staged: DocumentStore
    in_files: bool

    def init(self) -> Kept:
        return Kept()

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> Kept:
        del operator
        return Kept(None, PLAN.progress.restore(progress))

    def run(self, batch: MicroBatch, state: Kept) -> BatchOutcome[Kept]:
        number = batch.batch_id
        rows = pa.table({"batch": [number] * self.answers[number], "row": range(self.answers[number])}, ANSWERS)
        late = pa.table({"batch": [number], REASON: ["late"]}, REJECTED).slice(0, int(number % 3 == 0))
        rejected = BatchRows(REJECTED, late.num_rows, tables=(late,))
        return outcome_of(number, state, self._sent(rows, number), rejected)

    drain = run

    def _sent(self, rows: pa.Table, number: int) -> BatchRows:
        if not self.in_files or not rows.num_rows:
            return BatchRows(ANSWERS, rows.num_rows, tables=(rows,))
        parts = [part for part in (rows.slice(0, 1), rows.slice(1)) if part.num_rows]
        names = tuple(f"run-{number}-{place}.parquet" for place in range(len(parts)))
        for name, part in zip(names, parts, strict=True):
            self.staged.write_parquet(name, ANSWERS, [part])
        return BatchRows(ANSWERS, rows.num_rows, store=self.staged, files=names)


@dataclass(frozen=True)
class Rolling:
    """A job in `folder`, whose output and late rows go to folders that may roll.

    place    the folder of checkpoint and outputs, of which `folder` is a local one or none
    answers  rows that each batch answers
    """

    place: str
    answers: Mapping[int, int]
    clock: Clock = field(default_factory=Clock)

    def output(self, roll: str | None, size: int = 1 << 20, *, late: bool = False) -> Directory:
        kept = {} if roll is None else {"roll": roll, "roll_bytes": size}
        return Directory(f"{self.place}/{'late' if late else 'out'}", **kept)  # type: ignore[arg-type]

    def settings(self, roll: str | None, size: int = 1 << 20) -> JobSettings:
        sinks = Sinks.of(self.output(roll, size), self.output(roll, size, late=True))
        return settings_of(f"{self.place}/checkpoint", sinks)

    @contextmanager
    def programs(self, *, in_files: bool = False) -> Iterator[None]:
        """Let engines run the script."""
        with pytest.MonkeyPatch.context() as patch, self.clock.running():
            patch.setattr(shell, "program_of", lambda _, __, staged: Scripted(self.answers, staged("output"), in_files))
            yield

    def engine(self, roll: str | None, size: int = 1 << 20) -> Engine:
        """Start a driver, as a host does."""
        engine = Engine(self.settings(roll, size), Workers(1, 1))
        engine.finish_drain(SPARK)
        return engine

    def latest(self) -> Manifest | None:
        """Return the newest manifest."""
        return Ledger(DocumentStore.at(f"{self.place}/checkpoint").child("skypane")).latest()

    def committed(self) -> int:
        """Return the number of committed batches."""
        latest = self.latest()
        return 0 if latest is None else latest.batch_id + 1

    def read(self, name: str = "out") -> list[tuple[int, Any]]:
        """Return what a reader of the folder sees now, in the order of files and rows."""
        store = DocumentStore.at(f"{self.place}/{name}")
        columns = ("batch", "row") if name == "out" else ("batch", REASON)
        rows = []
        for file in store.names():
            if file.endswith(".parquet"):
                table = pq.read_table(pa.BufferReader(store.read(file)))
                rows += list(zip(*(table.column(column).to_pylist() for column in columns), strict=True))
        return rows

    def expected(self, batches: int) -> list[tuple[int, int]]:
        """Return the rows of the first batches, in order."""
        return [(batch, row) for batch in range(batches) for row in range(self.answers[batch])]

    def expected_late(self, batches: int) -> list[tuple[int, str]]:
        return [(batch, "late") for batch in range(0, batches, 3)]

    def waiting(self) -> dict[str, Any]:
        """Return the rows that wait, by the newest manifest."""
        latest = self.latest()
        return {} if latest is None else latest.outbox


def manifests(folder: Path) -> list[dict[str, Any]]:
    """Return the documents of a local ledger, oldest first."""
    ledger = folder / "checkpoint" / "skypane" / "ledger"
    return [json.loads(path.read_text())["document"] for path in sorted(ledger.iterdir())]
