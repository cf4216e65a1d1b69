"""A driver as the model sees it: the engine's shell, ledger, ownership and a folder of output, with batches of a row each."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.model.disk import Disk
from tests.model.gate import Gate
from tests.model.programs import Script

from skypane.control.measurements import BatchMeasurements
from skypane.control.parallelism import Workers
from skypane.control.splitting import splitting
from skypane.metrics import BatchMetrics
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.progress import KSlack
from skypane.progress.progress_policy import ProgressState
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import outbox, shell, timer
from skypane.runtime.spark.engine.fingerprint import Fingerprint
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.partials import PARTIALS, attempt_name
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.types import CheckpointError
from skypane.windows import Windows

CHECKPOINT, OUTPUT = "/model/checkpoint", "/model/out"
ANSWERS = pa.schema([("batch", pa.int64())])
PLAN = Plan(Skyline("price MIN"), Windows(10, 10), "time", KSlack())
SPARK = cast("SparkSession", SimpleNamespace(sparkContext=None))
ROWS = cast("DataFrame", SimpleNamespace(sparkSession=SPARK))
PLAIN = frozenset(
    "driver.<locals>.script Engine.__init__ Engine.__call__ Engine._process Engine._deliver fence Ledger.claim".split()
)
"""Functions that hold nothing but their variables."""


@dataclass(frozen=True)
class Kept:
    """The file of the last batch."""

    file: str | None = None
    progress: ProgressState = field(default_factory=PLAN.progress.init)
    drained = False
    due: int | None = None

    @property
    def files(self) -> frozenset[str]:
        return frozenset(self.snapshot()["files"])

    def snapshot(self) -> dict[str, Any]:
        return {"files": [] if self.file is None else [self.file], "ahead": []}


@dataclass(frozen=True)
class OnePartial:
    """A program that writes a partial with each batch, needs the one before it no more, and answers a row."""

    store: DocumentStore

    def init(self) -> Kept:
        return Kept()

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> Kept:
        return Kept(operator["files"][0], PLAN.progress.restore(progress))

    def run(self, batch: MicroBatch, state: Kept) -> BatchOutcome[Kept]:
        name = attempt_name(batch.batch_id, 0)
        _put(self.store.child(PARTIALS), name)
        answers = BatchRows(ANSWERS, 1, tables=(pa.table({"batch": [batch.batch_id]}),))
        return outcome_of(batch.batch_id, Kept(name, state.progress), answers, None, name)

    drain = run


def _put(store: DocumentStore, name: str) -> None:
    with store.open_output(name) as stream:
        stream.write(b"a row")


def outcome_of(
    batch_id: int, state: Kept, answers: BatchRows, rejected: BatchRows | None = None, *written: str
) -> BatchOutcome[Kept]:
    """Return the outcome of a batch of a row, which has written these partials."""
    metrics = BatchMetrics(
        batch_id=batch_id, rows=1, late_rows=0, quarantined={}, late_by_source={}, punctuation=None, newest=None,
        slack=None, seen_rows=1, dropped_rows=0, drop_budget=None, open_panes=0, open_rows=0, windows=1, window_rows=1,
        latest_window=None, exchange=False, splitting="", plq_workers=1, wlq_workers=1, wlq_where="driver",
    )  # fmt: skip
    return BatchOutcome(
        state, answers, rejected, written=frozenset(written), rejected_files=frozenset(), metrics=metrics,
        fingerprint=Fingerprint(1, batch_id), measured=BatchMeasurements((), 0.0, None, exchanged=False),
    )  # fmt: skip


def settings_of(checkpoint: str, sinks: Sinks) -> JobSettings:
    schema = pa.schema([("time", pa.timestamp("us", "UTC")), ("price", pa.float64())])
    return JobSettings(PLAN, schema, checkpoint, sinks, splitting("PB_RR"))


def driver(who: int, batches: int, roll: str | None = None) -> Script:
    """Return a driver that goes on to the end of so many batches; ends with "done", or with what it says.

    roll   how long answers wait for a file of several batches, on a clock that stands still; they come at the end
    """

    def script(gate: Gate) -> str:
        with _on(gate, who):
            try:
                engine = shell.Engine(
                    settings_of(CHECKPOINT, Sinks(Directory(OUTPUT, "json", roll=roll))), Workers(1, 1)
                )
                if roll is not None:
                    engine.publish(SPARK)
                for batch_id in range(engine._committed.batch_id + 1, batches):
                    engine(ROWS, batch_id)
                if roll is not None:
                    engine.publish(SPARK)
            except CheckpointError as error:
                return _in_short(str(error))
            except OSError as error:
                return repr(error)
            return "done"

    return script


def has_folder(who: int, parent: str, disk: Disk) -> bool:
    """Return whether a driver, in charge or about to be, has its folder in `parent`."""
    name = re.compile(rf"{parent}/\d{{12}}-{who:05x}[0-9a-f]{{3}}")
    return any(map(name.fullmatch, disk))


def _in_short(error: str) -> str:
    if "taken it over" in error:
        return "taken over"
    return "others were faster" if "while this one tried" in error else error


@contextmanager
def _on(gate: Gate, who: int) -> Iterator[None]:
    """Let stores reach the model's disk, stop the clock, and count what is drawn by chance: the code is a function then."""

    def drawn() -> uuid.UUID:
        gate.drawn += 1
        return uuid.UUID(int=(who << 12 | gate.drawn) << 96)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DocumentStore, "_fs", property(lambda store: (gate, store.place.path)))
        patch.setattr(DocumentStore, "is_local", property(lambda _: True))
        patch.setattr(DocumentStore, "sync", lambda *_: None)
        patch.setattr(DocumentStore, "open_input", lambda store, name: pa.BufferReader(store.read(name)))
        patch.setattr(outbox, "time", SimpleNamespace(monotonic=lambda: 0.0))
        patch.setattr(shell, "program_of", lambda _setting, store, _staged: OnePartial(store))
        patch.setattr(timer, "time", SimpleNamespace(time=lambda: 0.0, perf_counter=lambda: 0.0))
        patch.setattr(uuid, "uuid4", drawn)
        yield
