"""Run by test_bucket as a program: a stream of Spark from a local folder into a bucket: python -m ... FOLDER OUTPUT BATCH.

It kills itself after batch BATCH, if there is one of this number.
"""

from __future__ import annotations

import sys

from tests.runtime.driver import Task, job_of, run_until

import skypane as sp
from skypane.runtime.spark.machine.session import session


def main(folder: str, output: str, last: str) -> None:
    spark = session("local[2]", "skypane-bucket", {"spark.driver.memory": "512m"})
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=2)
    job = job_of(spark, Task(folder), output=f"{output}/out", late=f"{output}/late", workers=workers)
    run_until(int(last), job)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
