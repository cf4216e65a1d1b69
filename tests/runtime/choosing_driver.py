"""Run by test_control as a process of its own: a driver that chooses how its rows are exchanged, and dies after a batch."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from tests.runtime.driver import Task, job_of, run_until
from tests.runtime.splitting_driver import LAST

import skypane as sp
from skypane.control.costs import Costs
from skypane.runtime.spark.machine.session import session


def choosing_job(spark: SparkSession, folder: Path) -> sp.Job:
    """Return a job for which balance alone counts: an exchange costs nothing, and windows have no merges beyond their own cost.

    A batch is read by one task. Its panes are uneven, so rows in turn are the fastest way.
    """
    job = job_of(spark, Task(str(folder), late=False), workers=sp.WorkerOptions(plq_workers=2, wlq_workers=1))
    costs = Costs(exchange=0.0, exchange_per_row=0.0, window=1.0)
    return replace(job, settings=replace(job.settings, costs=costs))


def main(folder: Path) -> None:
    spark = session("local[2]", "skypane-choosing", {"spark.driver.memory": "512m"})
    run_until(LAST, choosing_job(spark, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
