"""Run by test_control as a process of its own: a driver whose panes are split by AS_PID, that dies after a given batch."""

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
"""The batch that the driver does not outlive: the third one that is exchanged, since three have to confirm that it pays."""


def splitting_job(spark: SparkSession, folder: Path) -> sp.Job:
    """Return a job whose rows are exchanged as soon as that may be, since only balance counts.

    An exchange costs nothing, and windows are set to cost so much that nothing is left for merges.
    """
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=1, splitting="AS_PID")
    job = job_of(spark, Task(str(folder), late=False), workers=workers)
    return replace(job, settings=replace(job.settings, costs=Costs(exchange=0.0, exchange_per_row=0.0, window=1.0)))


def main(folder: Path) -> None:
    spark = session("local[2]", "skypane-splitting", {"spark.driver.memory": "512m"})
    run_until(LAST, splitting_job(spark, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
