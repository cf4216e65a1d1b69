"""Run by test_window_division as a process of its own: a driver whose windows are divided among tasks, that dies after a batch."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from tests.runtime.driver import Task, job_of, run_until

import skypane as sp
from skypane.control.costs import Costs
from skypane.runtime.spark.machine.session import session

LAST = 5
"""The batch that the driver does not outlive."""


def dividing_job(spark: SparkSession, folder: Path) -> sp.Job:
    """Return a job whose windows are answered by workers, since a job costs nothing."""
    job = job_of(spark, Task(str(folder), late=False), workers=sp.WorkerOptions(plq_workers=2, wlq_workers=3))
    return replace(job, settings=replace(job.settings, costs=Costs(job=0.0, threads=1e3, window=1.0)))


def main(folder: Path) -> None:
    spark = session("local[2]", "skypane-dividing", {"spark.driver.memory": "512m"})
    run_until(LAST, dividing_job(spark, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
