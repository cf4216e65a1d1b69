"""Masters other than this process: executors in processes of their own, and a server that is spoken to (Spark Connect)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.runtime.late.test_zones import run_elsewhere
from tests.runtime.scenarios import lines_of


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
spark.stop()
"""


@pytest.mark.slow
def test_over_spark_connect_static_rows_are_answered(tmp_path: Path):
    pytest.importorskip("grpc", reason="needs pip install 'skypane[connect]'")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}
    printed = lines_of("-c", OVER_CONNECT, env=environment | {"PYSPARK_PYTHON": sys.executable}, cwd=tmp_path)
    assert printed[-2:] == ["2", "20"]
