"""Small late streams, a parquet file or more for each micro-batch, and what runtime/local.py answers to them."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.runtime import local
from skypane.testing import Session
from skypane.windows import Windows

SECOND = 1_000_000
STEP = 20 * SECOND
"""How far event time moves on from one batch of late_rows to the next."""

_SQL = {
    "int64": "bigint",
    "double": "double",
    "string": "string",
    "timestamp[us, tz=UTC]": "timestamp",
    "timestamp[us]": "timestamp_ntz",
    "list<item: timestamp[us, tz=UTC]>": "array<timestamp>",
    "list<item: timestamp[us]>": "array<timestamp_ntz>",
}

AnySession: TypeAlias = SparkSession | Session
"""A session of Spark, or one without Java that takes its place."""

Window = tuple[Any, Counter[tuple[Any, ...]]]
"""Start of a window, and its rows as a multiset."""


def late_rows(
    seed: int, *, batches: int = 6, rows: int = 40, start: int = 0, zone: str | None = "UTC"
) -> list[pa.Table]:
    """Return batches whose rows are up to a minute late, with few distinct values, so that ties abound."""
    rng = np.random.default_rng(seed)
    return [_batch(rng, number, rows, start + number * STEP, zone) for number in range(batches)]


def _batch(rng: np.random.Generator, number: int, rows: int, start: int, zone: str | None) -> pa.Table:
    delays = np.minimum(rng.exponential(8 * SECOND, rows), 60 * SECOND).astype(np.int64)
    times = start + rng.integers(0, STEP, rows) - delays
    return pa.table(
        {
            "id": pa.array(number * rows + np.arange(rows)),
            "ts": pa.array(times, pa.timestamp("us", zone)),
            "sensor": pa.array(["a", "b", None]).take(pa.array(rng.choice(3, rows, p=[0.5, 0.4, 0.1]))),
            "price": pa.array(rng.integers(0, 6, rows).astype(np.float64)),
            "rating": pa.array(rng.integers(0, 6, rows).astype(np.float64)),
            "weight": pa.array(rng.integers(-3, 4, rows)),
            "sent": pa.array(times + delays, pa.timestamp("us", zone)),
        }
    )


def write_batches(folder: Path, batches: Iterable[pa.Table], *, files: int = 1, first: int = 0) -> None:
    """Write each batch as `files` parquet files, which Spark reads in the order of their times of modification."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches, first):
        for part in range(files):
            draft, path = folder / f".{number:05d}", folder / f"{number:05d}-{part}.parquet"
            pq.write_table(batch.take(pa.array(range(part, batch.num_rows, files), pa.int64())), draft)
            os.utime(draft, (1_600_000_000 + number, 1_600_000_000 + number))
            draft.rename(path)


def leave_unfinished(checkpoint: Path, log: str = "offsets") -> None:
    """Leave what Spark leaves of its first batch if it is killed while it writes to a log of batches."""
    draft = checkpoint / log / ".0.5a0e6a6e-3b3c-4a6c-8f5e-0d9d2d6a4c11.tmp"
    draft.parent.mkdir(parents=True)
    draft.write_text("v1\n{")
    draft.with_name(f".{draft.name}.crc").write_bytes(b"crc\0")


@dataclass(frozen=True)
class Files(Sequence[pa.Table]):
    """The files of a folder as batches, in the order in which Spark reads them; those that come later, too."""

    folder: Path

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"), key=lambda path: (path.stat().st_mtime_ns, path.name))

    def __len__(self) -> int:
        return len(self._paths())

    def __getitem__(self, number: Any) -> Any:
        return pq.read_table(self._paths()[number])


def read_batches(session: AnySession, folder: Path, schema: pa.Schema, *, files: int = 1) -> DataFrame:
    """Return the stream whose micro-batches are the batches that write_batches() wrote."""
    if isinstance(session, Session):
        return session.stream(Files(folder), schema, at_once=files)
    columns = ", ".join(f"`{name}` {_SQL[str(kind)]}" for name, kind in zip(schema.names, schema.types, strict=True))
    return session.readStream.schema(columns).option("maxFilesPerTrigger", files).parquet(str(folder))


def stream_job(
    session: AnySession, folder: Path, query: Query, schema: pa.Schema, *, files: int = 1, **options: Any
) -> sp.Job:
    """Return the job over the batches in `folder`/in, with checkpoint and output beside them; `options` go before its own."""
    own: dict[str, Any] = {"time": "ts", "checkpoint": folder / "checkpoint", "output": folder / "out"}
    return sp.stream(read_batches(session, folder / "in", schema, files=files), query, **own | options)


def skylines_of(session: AnySession, folder: Path, batches: Sequence[pa.Table], output: Any) -> tuple[Plan, sp.Job]:
    """Write batches; return the plan and the job of skylines over them, by windows of half a minute."""
    write_batches(folder / "in", batches)
    plan = Plan(sp.Skyline("price MIN, rating MAX"), Windows.of("30 seconds"), "ts", sp.Watermark("20 seconds"))
    given: dict[str, Any] = {"window": plan.windows, "progress": plan.progress, "output": output}
    return plan, stream_job(session, folder, plan.query, batches[0].schema, **given)


def ended(job: sp.Job, **options: Any) -> sp.StreamHandle:
    """Run a job over all that is there; return its handle."""
    handle = job.start(trigger="available now", **options)
    assert handle.await_termination(600), handle.status
    return handle


def finish(job: sp.Job, **options: Any) -> list[sp.BatchMetrics]:
    """Run a job over all that is there; return the metrics of its batches."""
    seen: list[sp.BatchMetrics] = []
    ended(job, on_batch=seen.append, **options)
    return seen


def drained(job: sp.Job, **options: Any) -> list[sp.BatchMetrics]:
    """Run a job over all that is there, and answer what is left; return the metrics of all batches."""
    seen: list[sp.BatchMetrics] = []
    ended(job, on_batch=seen.append, **options).drain()
    return seen


def start_knowing(
    job: sp.Job, listener: Callable[[sp.StreamHandle, sp.BatchMetrics], None], **options: Any
) -> sp.StreamHandle:
    """Start a job whose listener also gets its handle: the first batch waits until there is one."""
    handles: Future[sp.StreamHandle] = Future()
    handle = job.start(on_batch=lambda batch: listener(handles.result(60), batch), **options)
    handles.set_result(handle)
    return handle


def answers(plan: Plan, events: Sequence[local.Event]) -> pa.Table:
    """Return the rows that the oracle answers, window by window."""
    return pa.concat_tables(answer.rows for answer in local.answers(plan, events))


def expected(plan: Plan, events: Sequence[local.Event]) -> list[Window]:
    """Return the windows that the oracle answers, in order; those without rows leave no trace in an output."""
    return windows_of(answers(plan, events))


def windows_of(table: pa.Table) -> list[Window]:
    """Return the windows of an output, in the order in which they stand there."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [(start, Counter(found)) for start, found in groupby(rows, key=lambda row: row[0])]


def parquet_rows(folder: Path) -> pa.Table:
    """Return the rows of an output directory, file by file in the order of their names."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("*.parquet")))


def ids_by_reason(rejected: pa.Table) -> dict[str, list[int]]:
    """Return the sorted ids of rejected rows by their reason."""
    found: dict[str, list[int]] = {}
    for row, reason in sorted(zip(rejected["id"].to_pylist(), rejected["reason"].to_pylist(), strict=True)):
        found.setdefault(reason, []).append(row)
    return found


def csv_rows(folder: Path, schema: pa.Schema) -> pa.Table:
    """The same of an output in csv, whose columns are those of `schema`."""
    kinds = pa_csv.ConvertOptions(column_types=schema, strings_can_be_null=True)
    return pa.concat_tables(pa_csv.read_csv(path, convert_options=kinds) for path in sorted(folder.glob("*.csv")))


@dataclass(frozen=True)
class CountBySensor(Query):
    """A query of a user's own, with rows unlike those that come in: how many rows each sensor has sent."""

    required: tuple[str, ...] = ()

    def validate(self, schema: pa.Schema) -> None:
        if "sensor" not in schema.names:
            raise sp.ConfigError(f"counting needs a column 'sensor', there are {', '.join(schema.names)}")

    def lift(self, rows: pa.Table) -> pa.Table:
        return self.combine([pa.table({"sensor": rows["sensor"], "n": pa.array([1] * rows.num_rows, pa.int64())})])

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        merged = pa.concat_tables(partials).group_by("sensor").aggregate([("n", "sum")])
        return merged.rename_columns(["sensor", "n"])

    def lower(self, partial: pa.Table) -> pa.Table:
        return partial

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([schema.field("sensor"), pa.field("n", pa.int64())])

    def describe(self) -> dict[str, Any]:
        return {"query": "count_by_sensor"}


@dataclass
class NaiveWatermark:
    """A fixed delay row by row, after its definition: which rows are late, by their ids."""

    pane: int
    delay: int = 20 * SECOND
    newest: int | None = None
    punctuation: float = -math.inf
    late: list[int] = field(default_factory=list)

    def take(self, batch: pa.Table) -> None:
        times = batch["ts"].cast(pa.int64()).to_pylist()
        rows = zip(batch["id"].to_pylist(), times, strict=True)
        self.late += [row for row, time in rows if (time // self.pane + 1) * self.pane <= self.punctuation]
        self.newest = max(times) if self.newest is None else max(self.newest, *times)
        self.punctuation = max(self.punctuation, self.newest - self.delay)
