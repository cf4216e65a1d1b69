"""Run a streaming job in the foreground: show progress, log the metrics, and take the snapshot for its report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import skypane as sp
from skypane.jobs.description import criteria, settings
from skypane.jobs.job_file import JobFile, MapSection
from skypane.jobs.job_query import JobQuery
from skypane.jobs.query_section import ContinuousSection
from skypane.locations import Location
from skypane.reporting.foreground import Drain, follow
from skypane.reporting.grids import grid_map
from skypane.reporting.live import Display
from skypane.reporting.runlog import RunLog
from skypane.reporting.snapshot import (
    SKYLINE,
    Snapshot,
    answers,
    example,
    front_sizes,
    last_window,
    latest_front,
    sizes_of_one_front,
)
from skypane.runtime.spark.waiting_answers import waiting_answers
from skypane.types import CheckpointError


def run_stream(
    job: JobFile,
    ready: sp.Job,
    display: Display,
    log: RunLog,
    *,
    seconds: float | None = None,
    drain: Drain = False,
    begin: Literal["at_offsets"] | None = None,
    started: Callable[[sp.StreamHandle], None] = lambda _: None,
) -> bool:
    """Run a streaming job; return False if it was interrupted. `seconds` limits an unbounded stream.

    drain    answer the windows that are open at the end, as if the stream ended there
    begin    as of Job.start()
    started  called with the handle of the query
    """

    def on_batch(metrics: sp.BatchMetrics) -> None:
        log.append(metrics)
        display.batch(metrics, lambda: newest_answer(job, metrics, ready.settings.checkpoint))

    def start(listen: Callable[[sp.BatchMetrics], None]) -> sp.StreamHandle:
        return ready.start(on_batch=listen, trigger=job.trigger, begin=begin, name=job.name)

    with log.running(), display:
        return follow(start, on_batch=on_batch, started=started, seconds=seconds, drain=drain)


def snapshot(job: JobFile, log: RunLog, *notes: str) -> Snapshot:
    """Return the data of a streaming job's report: its log, and its windows if the output is local parquet.

    notes   remarks for the reader
    """
    if not job.queries:
        (one,) = job.each_query
        return replace(
            _answered(one, log.batches(), job.map),
            title=job.name,
            settings=tuple(settings(job)),
            question=job.question or f"{one.build()}.",
            notes=notes,
        )
    batches = log.batches()
    each = [
        (one, tuple(metrics.of(one.name) for metrics in batches if one.name in metrics.queries))
        for one in job.each_query
    ]
    return Snapshot(
        title=job.name,
        question=job.question or "; ".join(f"{one.name}: {one.build()}" for one in job.each_query) + ".",
        window=0,
        criteria=(),
        batches=batches,
        settings=tuple(settings(job)),
        queries=tuple(_answered(one, of_one) for one, of_one in each if of_one),
        notes=notes,
    )


def _answered(one: JobQuery, batches: tuple[sp.BatchMetrics, ...], drawn: MapSection | None = None) -> Snapshot:
    """Return the part of a report on one query."""
    folder = _folder(one)
    written = None if folder is None else answers(folder)
    windows, updates = (None, written) if isinstance(one.query, ContinuousSection) else (written, None)
    by = one.query.by
    return Snapshot(
        title=one.name,
        question=f"{one.build()}.",
        window=one.window.build().length if one.window is not None else 0,
        criteria=criteria(one),
        batches=batches,
        sizes=None if windows is None else front_sizes(windows, () if one.query.kind == "aggregate" else by),
        example=None if windows is None else example(windows, by),
        grid=None if windows is None or drawn is None else grid_map(windows, drawn.build()),
        meaning=SKYLINE if one.query.kind == "skyline" else "",
        one_front=None if updates is None else sizes_of_one_front(updates, by),
    )


def begin_log(job: JobFile, log: RunLog) -> bool:
    """Record the job in its log; return True if an earlier run is resumed.

    The checkpoint judges changes of queries, windows, columns, policies and outputs, but it does not know the rows.
    Raise CheckpointError if the job would read others.
    """
    return log.begin({"job": job.summary()}, lambda known, wanted: _check_rows(known.get("job", {}), wanted["job"]))


def _check_rows(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise CheckpointError if a job reads other rows than the one before it; columns may be added and removed."""
    before, after = _rows(known), _rows(wanted)
    derived = before["derive"].keys() & after["derive"].keys()
    before["derive"], after["derive"] = (
        {name: one["derive"][name] for name in sorted(derived)} for one in (before, after)
    )
    for field in before:
        if before[field] != after[field]:
            raise CheckpointError(
                f"{field} was {before[field]!r}, is {after[field]!r}: the checkpoint has rows and offsets of the "
                f"earlier one; restore it, or use another checkpoint"
            )


def _rows(job: Mapping[str, Any]) -> dict[str, Any]:
    free = ("schema", "max_files_per_trigger")
    source = {name: value for name, value in job.get("source", {}).items() if name not in free}
    if "inputs" in source:  # how they are read may change
        source["inputs"] = {name: source["inputs"][name] for name in ("given", "input_column", "malformed_column")}
    return {"source": source, "derive": job.get("derive", {}), "where": job.get("where")}


def run_log(job: JobFile) -> RunLog:
    """Return the log of a streaming job, which lies beside the checkpoint, so that a resumed job appends to it.

    The log of a remote checkpoint, or of one that a Spark Connect server reaches, lies in the working folder. Without a
    checkpoint, the log is in a temporary folder.
    """
    if job.checkpoint is None:
        return RunLog(Path(tempfile.mkdtemp(prefix="skypane-metrics-")))
    return log_of(job.checkpoint, on_server=job.spark.remote is not None)


def log_of(checkpoint: str, *, on_server: bool = False) -> RunLog:
    """Return the log of the job with this checkpoint, which only a server reaches if `on_server`."""
    place = Location.of(checkpoint, "checkpoint")
    is_beside = place.is_local and not on_server
    return RunLog(Path(f"{place}-metrics" if is_beside else f"{Path(place.path).name or place.authority}-metrics"))


def newest_answer(job: JobFile, metrics: sp.BatchMetrics, checkpoint: str) -> pa.Table | None:
    """Return the rows of the newest answer of the only query, or None if they are not on this machine.

    checkpoint  where answers wait for their file, if the output rolls
    """
    if job.queries:
        return None
    (one,) = job.each_query
    if isinstance(one.query, ContinuousSection):
        folder = None if job.front is None else _local(job.front.path, "front.path")
        return None if folder is None else answers(folder)
    folder = _folder(one)
    if folder is None:
        return None
    waiting = None if one.output.roll is None else waiting_answers(checkpoint, metrics.batch_id)
    return latest_front(folder, metrics) if waiting is None else last_window(waiting, metrics)


def _folder(one: JobQuery) -> Path | None:
    """Return the folder of a query's answers, from which plots are drawn; None unless it is local parquet."""
    if one.output.format != "parquet" or one.output.path is None:
        return None
    return _local(one.output.path, one.field("output.path"))


def _local(path: str, field: str) -> Path | None:
    place = Location.of(path, field)
    return Path(str(place)) if place.is_local else None
