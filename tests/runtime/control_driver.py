"""Run by test_control_loop as a process of its own: one driver of streams whose control has something to remember, killed at once.

Each stream runs to the same batch and waits there, so that none of them disturbs what the others measure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Final

from pyspark.sql import SparkSession
from tests import stacks
from tests.runtime.driver import PATIENT, Task, die, job_of

import skypane as sp
from skypane.control.costs import Costs
from skypane.runtime.spark.machine.session import session

LAST = 5
"""The batch that the driver does not outlive: the third one that is exchanged, since three have to confirm that it pays."""

_ONLY_BALANCE: Final = Costs(exchange=0.0, exchange_per_row=0.0, window=1.0)
"""An exchange costs nothing, and windows cost so much that nothing is left for merges."""


def splitting_job(spark: SparkSession, folder: Path) -> sp.Job:
    """Return a job whose panes are split by AS_PID, and whose rows are exchanged as soon as that may be."""
    return _job(spark, folder, _ONLY_BALANCE, plq_workers=2, wlq_workers=1, splitting="AS_PID")


def choosing_job(spark: SparkSession, folder: Path) -> sp.Job:
    """Return a job that chooses how rows are exchanged: of one source partition and uneven panes, in turn is the fastest way."""
    return _job(spark, folder, _ONLY_BALANCE, plq_workers=2, wlq_workers=1)


def dividing_job(spark: SparkSession, folder: Path) -> sp.Job:
    """Return a job whose windows are divided among workers, since a job costs nothing."""
    return _job(spark, folder, Costs(job=0.0, threads=1e3, window=1.0), plq_workers=2, wlq_workers=3)


def _job(spark: SparkSession, folder: Path, costs: Costs, **workers: object) -> sp.Job:
    job = job_of(spark, Task(str(folder), late=False), workers=sp.WorkerOptions(**workers))  # type: ignore[arg-type]
    return replace(job, settings=replace(job.settings, costs=costs))


JOBS: Final[Mapping[str, Callable[[SparkSession, Path], sp.Job]]] = {
    "splitting": splitting_job,
    "choosing": choosing_job,
    "dividing": dividing_job,
}
"""By the name of the folder that each has."""


def main(folder: Path) -> None:
    """Run each stream until batch LAST is committed, then die."""
    spark = session("local[2]", "skypane-control", {"spark.driver.memory": "512m"})
    stacks.register()
    for name, make in JOBS.items():
        come = Event()

        def hold(metrics: sp.BatchMetrics, come: Event = come) -> None:
            if metrics.batch_id == LAST:
                come.set()
                Event().wait()

        make(spark, folder / name).start(trigger="available now", on_batch=hold)
        assert come.wait(PATIENT)
    die()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
