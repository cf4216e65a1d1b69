"""A driver whose inputs are folders of the store that the environment names: python -m ... FOLDER.

It checks the laws of sources over one of them, answers a job over the other, drains it, and writes the error of the laws and
the lag of the inputs into FOLDER/reported.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import skypane as sp
from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sources.many.source import ManySource
from skypane.testing import check_source


def laws(spark: SparkSession, folder: Path) -> str:
    """Return which law is broken."""
    options = {
        "inputs": json.dumps([{"objects": "s3://bucket/laws/", "format": "json"}]),
        "rowsPerTrigger": "7",
    }
    try:
        check_source(spark, ManySource, options, folder, schema="n BIGINT, city STRING, input STRING")
    except AssertionError as error:
        return str(error)
    return ""


def answers(spark: SparkSession, folder: Path) -> list[dict[str, object]]:
    """Answer the job into a folder; return the lag of its inputs."""
    objects = [{"objects": "s3://bucket/in/", "format": "json"}]
    rows = sp.inputs(spark, objects, "ts timestamp, n long", rows_per_trigger=50, malformed_column="bad")
    job = sp.stream(
        rows,
        sp.Aggregate(total=sp.sum("n"), rows=sp.count()),
        time="ts",
        window="1 minute",
        output=sp.Directory(str(folder / "out")),
        late=sp.Directory(str(folder / "late")),
        checkpoint=str(folder / "checkpoint"),
    )
    handle = job.start(trigger="available now")
    handle.await_termination()
    lag: list[dict[str, object]] = handle.inputs().select(["input", "lag"]).to_pylist()
    handle.drain()
    return lag


def main(folder: Path) -> None:
    spark = session("local[2]", "skypane-objects", {"spark.driver.memory": "512m"})
    reported = {"broken": laws(spark, folder / "laws"), "lag": answers(spark, folder / "job")}
    (folder / "reported.json").write_text(json.dumps(reported))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
