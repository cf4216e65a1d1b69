"""Run by test_job_descriptions as a process of its own: a query in a session with Spark's UI, and what the UI serves of its jobs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.request import urlopen

from pyspark.sql import SparkSession
from tests.java import inside_java
from tests.runtime.decisions.test_monitored import job_of, until
from tests.runtime.test_job_descriptions import Counting

import skypane as sp

LIMIT = 300


def main(folder: Path) -> None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.port", "0")  # a free one
    for name, value in inside_java().items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    assert sp.session() is spark
    handle = job_of(spark, folder, output=Counting()).start(trigger="available now")
    assert handle.await_termination(LIMIT)
    context = spark.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/jobs"

    def shown() -> list[str]:
        with urlopen(address, timeout=LIMIT) as answer:  # noqa: S310 - the address is that of this process
            return [job.get("description", "") for job in json.load(answer)]

    until(lambda: any(text.endswith("batch 3, sink") for text in shown()))  # Spark's UI hears of jobs a little later
    print(json.dumps(shown()))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
