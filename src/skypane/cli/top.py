"""`skypane top JOB.yaml`: show a job that another process runs, as `skypane run` shows it there."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace, _SubParsersAction
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.addresses import without_secrets
from skypane.cli.run import allow, connect, job_of
from skypane.locations import Location
from skypane.types import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from skypane.jobs import JobFile
    from skypane.metrics import BatchMetrics
    from skypane.reporting.runlog import RunLog


@dataclass(frozen=True)
class Watched:
    """A job by its checkpoint; `job` is None if only the checkpoint is known, and the answers are not shown then."""

    title: str
    checkpoint: str
    job: JobFile | None = None

    @property
    def on_server(self) -> bool:
        """Whether a Spark Connect server runs the job."""
        return self.job is not None and self.job.spark.remote is not None

    @property
    def is_beside(self) -> bool:
        """Whether the log of the job is beside its checkpoint."""
        return Location.of(self.checkpoint, "checkpoint").is_local and not self.on_server

    def front(self, metrics: BatchMetrics) -> pa.Table | None:
        """Return the newest answer, if the job says where it is."""
        from skypane.jobs.running import newest_answer  # noqa: PLC0415

        return None if self.job is None else newest_answer(self.job, metrics, self.checkpoint)


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser("top", help="show the live table of a job that another process runs")
    parser.add_argument("job", metavar="JOB", help="job file, name of an example, or folder or URI of a checkpoint")
    allow(parser)
    connect(parser, "show a job that runs")
    return parser


def run(arguments: Namespace) -> int:
    """Show the batches of the job as they are committed, until it ends; nothing of it is changed."""
    from skypane.cli.command_console import CommandConsole  # noqa: PLC0415 - as in run
    from skypane.jobs.running import log_of  # noqa: PLC0415
    from skypane.reporting import live  # noqa: PLC0415
    from skypane.reporting.watching import view_from, watch  # noqa: PLC0415
    from skypane.runtime.spark.committed_batches import CommittedBatches  # noqa: PLC0415

    watched = _watched(arguments)
    batches = CommittedBatches(watched.checkpoint)
    known = batches.new()
    console = CommandConsole()
    display = live.display(
        view_from(watched.title, known[:-1]), console, interrupt="Ctrl-C ends the table, not the job"
    )
    ending = _Ending(log_of(watched.checkpoint, on_server=watched.on_server), is_beside=watched.is_beside)
    watch(display, known[-1:], batches.new, ending, watched.front)
    console.print(ending.words)
    return 0


def _watched(arguments: Namespace) -> Watched:
    """Return what JOB names; raise ConfigError if it has no checkpoint."""
    from skypane.jobs import examples  # noqa: PLC0415

    text = arguments.job
    # Path.is_dir() raises for a name that no file can have.
    if "://" in text or os.path.isdir(Path(text) / "skypane"):  # noqa: PTH112
        return Watched(without_secrets(text), text)
    if os.path.isdir(text) and text not in examples.names():  # noqa: PTH112
        raise ConfigError(f"the folder {text} is not a checkpoint of skypane: it has no folder 'skypane'")
    job = job_of(arguments)
    if job.checkpoint is None:
        raise ConfigError(f"checkpoint is missing in {job.name}; without one its batches cannot be read by others")
    return Watched(job.name, job.checkpoint, job)


class _Ending:
    """Whether the job has ended, by the mark of `skypane run`; a job that leaves none here is shown until Ctrl-C.

    is_beside   the mark is where the checkpoint is, so that it is of this job even if it was not seen running
    """

    def __init__(self, log: RunLog, *, is_beside: bool) -> None:
        self._log = log
        self._is_beside = is_beside
        self._was_running = False

    def __call__(self) -> bool:
        running = self._log.is_running
        self._was_running = self._was_running or running is True
        return running is False and (self._was_running or self._is_beside)

    @property
    def words(self) -> str:
        return "the job has ended" if self._was_running else "`skypane run` is not running the job"
