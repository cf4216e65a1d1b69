"""A session that does what first queries do, and whose Java then writes the classes that it has loaded; for class_archive.py.

    python -m skypane.runtime.spark.machine.archived_start ARCHIVE

Rows, answers and a checkpoint are beside the archive, in a folder that the caller removes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from skypane.runtime.spark.api import skyline, stream
from skypane.runtime.spark.machine.class_archive import QUIET
from skypane.runtime.spark.machine.session import JAVA_OPTIONS, defaults, session

_MASTER = "local[2]"
_PREFERENCE = "a MIN, b MIN"


def main(archive: Path) -> None:
    """Run the queries and wait until Java has ended."""
    options = f'{defaults(_MASTER)[JAVA_OPTIONS]} "-XX:ArchiveClassesAtExit={archive}" {QUIET}'
    spark = session(_MASTER, "skypane warm", {JAVA_OPTIONS: options})
    _ask(spark, archive.parent)
    _end(spark)


def _ask(spark: SparkSession, folder: Path) -> None:
    """Answer a table and a stream of files."""
    given = spark.createDataFrame([(0, 1.0, 2.0), (60, 2.0, 1.0), (120, 1.5, 1.5)], "s long, a double, b double")
    rows = given.selectExpr("timestamp_seconds(s) AS ts", "a", "b")
    skyline(rows, _PREFERENCE).collect()
    rows.write.json(f"{folder}/rows")
    arriving = spark.readStream.schema(rows.schema).json(f"{folder}/rows")
    answers, state = f"{folder}/answers", f"{folder}/state"
    job = stream(arriving, _PREFERENCE, time="ts", window="1 minute", output=answers, checkpoint=state)
    handle = job.start(trigger="available now")
    handle.await_termination()
    handle.drain()
    spark.read.parquet(answers).orderBy("a").collect()


def _end(spark: SparkSession) -> None:
    """Stop the session and its Java, which otherwise ends some time after this process."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - PySpark has no other way to its process
    spark.stop()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - as above
    gateway.shutdown()  # type: ignore[union-attr]
    gateway.proc.stdin.close()  # type: ignore[union-attr]
    gateway.proc.wait()  # type: ignore[union-attr]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
