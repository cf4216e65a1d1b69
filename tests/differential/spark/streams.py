"""A case as a stream on Spark: what its output and its late sink hold in the end, through all that happens to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.differential import objects
from tests.differential.case import SOURCE, TIME, Continuous
from tests.differential.spark import files
from tests.differential.spark.runs import Run

import skypane as sp
from skypane.control.costs import Costs
from skypane.control.lift_placement import LiftPlacement
from skypane.operators.fronts import ContinuousSkyline
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.late_rows import schema_of
from skypane.runtime.spark.engine.ledger import KEEP, Ledger
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.directory import Directory
from skypane.types import Length

WAIT: Final = 300
"""Seconds until a stream that does not end is abandoned."""

_COSTS: Final = {
    "driver": Costs(),
    "spark": Costs(
        job=0.0, exchange=0.0, exchange_per_row=0.0, window_per_row=1.0, shard_per_row=0.0, group_per_row=1.0
    ),
    "threads": Costs(
        job=1e6, window=0.0, window_per_row=10.0, compared_per_row=10.0, front_per_pair=1.0, group_per_row=1.0
    ),
}
"""What the laws receive, so that they answer windows there, and fronts take rows there."""


class SinkError(Exception):
    """What a sink raises that has taken its batch."""


@dataclass(frozen=True)
class Failing(Directory):
    """A folder that takes a batch, and fails."""

    batch: int = -1

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        super().write(spark, answers, batch_id)
        if batch_id == self.batch:
            raise SinkError(f"batch {batch_id} is taken")


@dataclass(frozen=True)
class Found:
    """What a stream has written: answers or updates, and the rows that did not enter, with their reason.

    places   where windows were answered, or a front has taken rows
    """

    answers: pa.Table
    rejected: pa.Table
    places: frozenset[str]


def found(spark: SparkSession, run: Run, folder: Path) -> Found:
    """Run the stream to its end."""
    batches, begin = run.case.batches, 0
    for stop in (*run.stops, len(batches) - 1):
        files.write(folder / "in", batches[begin : stop + 1], run.files, begin)
        last = stop == len(batches) - 1
        _run(spark, run, folder, drain=last or stop in run.case.drains)
        if run.lost and not last:
            _lose_commit(folder / "checkpoint" / "commits")
        begin = stop + 1
    plan = objects.plan(run.case)
    schema = plan.output_schema(run.case.rows.schema)
    rejected = files.read(folder / "late", schema_of(run.case.rows.schema))
    return Found(files.read(folder / "out", schema), rejected, _places(folder / "checkpoint"))


def _places(checkpoint: Path) -> frozenset[str]:
    """Return where the windows of the batches that the ledger still has were answered, by what it says."""
    metrics = Ledger(DocumentStore.at(checkpoint / "skypane")).history(KEEP)
    return frozenset(one["wlq_where"] for one in metrics if one["windows"])


def _run(spark: SparkSession, run: Run, folder: Path, *, drain: bool) -> None:
    """Run what is there; a second time, if a sink fails on the way."""
    if run.fails is not None:
        try:
            _finish(_job(spark, run, folder, Failing(str(folder / "out"), batch=run.fails)), drain=False)
        except sp.SkypaneError as error:
            if not isinstance(error.__cause__, SinkError):
                raise
    _finish(_job(spark, run, folder, Directory(str(folder / "out"))), drain=drain)


def _finish(job: sp.Job, *, drain: bool) -> None:
    handle = job.start(trigger="available now")
    if not handle.await_termination(WAIT):
        handle.query.stop()
        raise AssertionError(f"the stream has not ended after {WAIT} seconds")
    if drain:
        handle.drain()


def _job(spark: SparkSession, run: Run, folder: Path, output: Directory) -> sp.Job:
    case = run.case
    plan = objects.plan(case)
    rows = files.stream(spark, folder / "in", case.rows.schema, run.files)
    plq, wlq = run.workers
    options: dict[str, Any] = {
        "time": TIME,
        "source": SOURCE if SOURCE in case.rows.column_names else None,
        "checkpoint": folder / "checkpoint",
        "output": output,
        "late": folder / "late",
        "progress": plan.progress,
        "workers": sp.WorkerOptions(plq_workers=plq, wlq_workers=wlq, splitting=run.splitting),
    }
    if isinstance(case.spec, Continuous):
        assert isinstance(plan.query, ContinuousSkyline)
        job = sp.continuous_skyline(
            rows,
            plan.query.preference,
            by=plan.query.by,
            window=Length(plan.query.window),
            every=Length(plan.windows.length),
            **options,
        )
    else:
        job = sp.stream(rows, plan.query, window=plan.windows, **options)
    return replace(job, settings=replace(job.settings, costs=_COSTS[run.where], lift=LiftPlacement(run.lift)))


def _lose_commit(commits: Path) -> None:
    """Remove Spark's newest commit, as if the driver had been killed just before it: the batch comes again."""
    numbers = [int(path.name) for path in commits.glob("*") if path.name.isdigit()]
    if numbers:
        (commits / str(max(numbers))).unlink()
        (commits / f".{max(numbers)}.crc").unlink(missing_ok=True)
