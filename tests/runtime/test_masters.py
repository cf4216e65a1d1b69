"""Masters other than this process: executors in processes of their own, and a server that is spoken to (Spark Connect)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.runtime.test_zones import run_elsewhere


@pytest.mark.slow
def test_executors_in_separate_processes_answer_as_the_oracle(tmp_path: Path):
    conf = {"spark.master": "local-cluster[2,1,1024]"}
    assert run_elsewhere(tmp_path, conf, TZ="America/New_York") == ["America/New_York", "True"]


OVER_CONNECT = """
from pyspark.sql import SparkSession
import skypane as sp

spark = SparkSession.builder.remote("local[2]").getOrCreate()
rows = spark.range(1000).selectExpr("id", "timestamp_micros(id * 1000000) ts", "id % 37 price", "id % 41 rating")
print(sp.skyline(rows, "price MIN, rating MAX").count())
print(sp.top_k(rows, 2, rows.rating - rows.price, time="ts", window="100 seconds").count())
rows.write.json("in")
stream = spark.readStream.schema("id long, ts timestamp, price long, rating long").json("in")
try:
    sp.stream(stream, sp.Skyline("price MIN"), time="ts", window="100 seconds", checkpoint="state", output="out")
except sp.ConfigError as error:
    print(error)
spark.stop()
"""


@pytest.mark.slow
def test_over_spark_connect_static_rows_are_answered_and_streams_are_refused_by_name(tmp_path: Path):
    pytest.importorskip("grpc", reason="needs pip install 'pyspark[connect]'")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}
    done = subprocess.run(
        [sys.executable, "-c", OVER_CONNECT], cwd=tmp_path, env=environment | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    best, top, refused = done.stdout.splitlines()[-3:]
    assert (best, top) == ("2", "20")
    assert refused.startswith("this stream is read over Spark Connect")
