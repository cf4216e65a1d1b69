"""A driver whose inputs are a folder of the store that the environment names: python -m ... laws FOLDER, or answers FOLDER.

laws      checks the laws of sources
answers   answers a job over what is in the folder, drains it, and writes the lag of its inputs into FOLDER/reported.json
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

OBJECTS = [{"objects": "s3://bucket/in/", "format": "json"}]


def laws(spark: SparkSession, folder: Path) -> None:
    options = {"inputs": json.dumps(OBJECTS), "rowsPerTrigger": "7"}
    check_source(spark, ManySource, options, folder, schema="n BIGINT, city STRING, input STRING")


def answers(spark: SparkSession, folder: Path) -> None:
    rows = sp.inputs(spark, OBJECTS, "ts timestamp, n long", rows_per_trigger=50, malformed_column="bad")
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
    (folder / "reported.json").write_text(json.dumps(handle.inputs().select(["input", "lag"]).to_pylist()))
    handle.drain()


def main(what: str, folder: str) -> None:
    spark = session("local[2]", "skypane-objects", {"spark.driver.memory": "512m"})
    {"laws": laws, "answers": answers}[what](spark, Path(folder))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
