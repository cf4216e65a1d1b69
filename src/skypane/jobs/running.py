"""Run a streaming job in the foreground: show progress, log the metrics, and take the snapshot for its report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import skypane as sp
from skypane.jobs.description import criteria, settings
from skypane.jobs.job_file import JobFile
from skypane.jobs.query_section import ContinuousSection
from skypane.locations import Location
from skypane.reporting.foreground import follow
from skypane.reporting.grids import grid_map
from skypane.reporting.live import Display
from skypane.reporting.runlog import RunLog
from skypane.reporting.snapshot import (
    SKYLINE,
    Snapshot,
    answers,
    example,
    front_sizes,
    latest_front,
    sizes_of_one_front,
)


def run_stream(
    job: JobFile,
    ready: sp.Job,
    display: Display,
    log: RunLog,
    *,
    ended: Callable[[sp.StreamHandle], bool] = lambda _: False,
    seconds: float | None = None,
    drain: bool = False,
) -> bool:
    """Run a streaming job; return False if it was interrupted. `ended` and `seconds` limit an unbounded stream.

    drain  answer the windows that are open at the end, as if the stream ended there
    """

    def on_batch(metrics: sp.BatchMetrics) -> None:
        log.append(metrics)
        display.batch(metrics, lambda: _newest(job, metrics))

    with display:
        return follow(ready, on_batch=on_batch, ended=ended, trigger=job.trigger, seconds=seconds, drain=drain)


def snapshot(job: JobFile, log: RunLog) -> Snapshot:
    """Return the data of a streaming job's report: its log, and its windows if the output is local parquet."""
    folder = _folder(job)
    written = None if folder is None else answers(folder)
    windows, updates = (None, written) if _is_continuous(job) else (written, None)
    by, drawn = job.query.by, job.map
    return Snapshot(
        title=job.name,
        question=job.question or f"{job.build_query()}.",
        window=job.window.build().length if job.window is not None else 0,
        criteria=criteria(job),
        batches=log.batches(),
        settings=tuple(settings(job)),
        sizes=None if windows is None else front_sizes(windows, () if job.query.kind == "aggregate" else by),
        example=None if windows is None else example(windows, by),
        grid=None if windows is None or drawn is None else grid_map(windows, drawn.build()),
        meaning=SKYLINE if job.query.kind == "skyline" else "",
        one_front=None if updates is None else sizes_of_one_front(updates, by),
    )


def run_log(job: JobFile) -> RunLog:
    """Return the log of a streaming job, which lies beside the checkpoint, so that a resumed job appends to it.

    The log of a remote checkpoint lies in the working folder. Without a checkpoint, the log is in a temporary folder.
    """
    if job.checkpoint is None:
        return RunLog(Path(tempfile.mkdtemp(prefix="skypane-metrics-")))
    place = Location.of(job.checkpoint, "checkpoint")
    return RunLog(Path(f"{place}-metrics" if place.is_local else f"{Path(place.path).name or place.authority}-metrics"))


def _is_continuous(job: JobFile) -> bool:
    """Return whether the job writes updates of one front instead of windows."""
    return isinstance(job.query, ContinuousSection)


def _newest(job: JobFile, metrics: sp.BatchMetrics) -> pa.Table | None:
    """Return the rows of the newest answer, or None if they are not on this machine."""
    if _is_continuous(job):
        folder = None if job.front is None else _local(job.front.path, "front.path")
        return None if folder is None else answers(folder)
    folder = _folder(job)
    return None if folder is None else latest_front(folder, metrics)


def _folder(job: JobFile) -> Path | None:
    """Return the folder of the answers, from which plots are drawn; None unless it is local parquet."""
    if job.output.format != "parquet" or job.output.path is None:
        return None
    return _local(job.output.path, "output.path")


def _local(path: str, field: str) -> Path | None:
    place = Location.of(path, field)
    return Path(str(place)) if place.is_local else None
