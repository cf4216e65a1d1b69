"""A driver that catches up with FOLDER/inputs.json, and prints each batch when it is in the ledger: python -m ... FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import skypane as sp
from skypane.progress.progress_policy import ProgressPolicy
from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sources.many.inputs_api import inputs

QUERY = sp.TopK(3, "price")
WINDOW, SLIDE = "1 minute", "20 seconds"
POLICY = sp.Watermark("3 minutes")


def catch_up(
    spark: SparkSession, folder: Path, *, align: bool = True, progress: ProgressPolicy = POLICY, rows: int = 600
) -> sp.Job:
    """Return the job: the best three rows of each minute, in batches that are far smaller than the backlog."""
    read = inputs(spark, folder / "inputs.json", "ts timestamp, price double", rows_per_trigger=rows, align=align)
    return sp.stream(
        read, QUERY, time="ts", window=WINDOW, slide=SLIDE, progress=progress, output=folder / "out",
        checkpoint=folder / "checkpoint",
    )  # fmt: skip


def main(folder: Path) -> None:
    spark = session("local[2]", "skypane-catch-up", {"spark.driver.memory": "512m"})
    handle = catch_up(spark, folder).start(on_batch=lambda batch: print(f"batch {batch.batch_id}", flush=True))
    handle.await_termination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
