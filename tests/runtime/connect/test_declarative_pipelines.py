"""Spark Declarative Pipelines, run by Spark's own command: static queries as views that are stored, and the
answers of a stream as the source of a streaming table. See docs/connect.md."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.checkout import ROOT
from tests.java import options as java_options
from tests.runtime.driver import Task, job_of
from tests.runtime.scenarios import PATIENCE
from tests.runtime.streams import answers, finish, late_rows, parquet_rows, write_batches

import skypane as sp
from skypane.plan import Plan
from skypane.progress import Watermark
from skypane.runtime import local
from skypane.runtime.spark.machine.java import ensure_java
from skypane.windows import Windows

pytest.importorskip("pyspark.pipelines", reason="Declarative Pipelines need PySpark 4.1")
pytest.importorskip("grpc", reason="needs pip install 'skypane[connect]'")
pytest.importorskip("yaml")

pytestmark = [pytest.mark.spark, pytest.mark.slow]


BATCHES: Final = late_rows(31, batches=4)
QUERY: Final = sp.Skyline("price MIN, rating MAX", ("sensor",))
SPEC: Final = """
name: of the test
storage: file://{folder}/storage
configuration: {{spark.sql.shuffle.partitions: "1", spark.sql.session.timeZone: UTC}}
libraries:
  - glob: {{include: "definitions/**"}}
"""
BEGIN: Final = """
from pyspark import pipelines as dp
import skypane as sp

rows = spark.read.parquet("{folder}/in")
"""
VIEWS: Final = """
whole = sp.skyline(rows, "price MIN, rating MAX", by="sensor")
windows = sp.ask(rows, sp.Skyline("price MIN, rating MAX", by="sensor"), time="ts", window="20 seconds")
answers = spark.read.parquet("{folder}/out").schema

@dp.materialized_view
def best():
    return whole

@dp.materialized_view
def best_of_windows():
    return windows

@dp.materialized_view
def cheap():
    return spark.read.table("best").where("price < 2")

@dp.table
def answered():
    return spark.readStream.schema(answers).parquet("{folder}/out")
"""
IN_A_FLOW: Final = """
@dp.materialized_view
def best():
    return sp.skyline(rows, "price MIN, rating MAX")
"""
STARTED: Final = """
stream = sp.stream(
    spark.readStream.schema(rows.schema).parquet("{folder}/in"), "price MIN, rating MAX", time="ts", window="20 seconds",
    output="{folder}/out", checkpoint="{folder}/checkpoint",
).start()
"""


def run_pipeline(folder: Path, definitions: str) -> subprocess.CompletedProcess[str]:
    """Run the pipeline of these definitions to its end."""
    (folder / "definitions").mkdir()
    (folder / "definitions" / "all.py").write_text((BEGIN + definitions).format(folder=folder))
    (folder / "spec.yml").write_text(SPEC.format(folder=folder))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    ensure_java(environment)
    home = Path(pyspark.__file__).parent
    environment |= {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "src"),
    }  # fmt: skip
    options = ["--remote", "local[1]", "--driver-memory", "512m", "--driver-java-options", java_options()]
    command = [str(home / "bin" / "spark-pipelines"), "run", "--spec", str(folder / "spec.yml"), *options]
    cache = ROOT / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    with (cache / "pipeline.lock").open("w") as lock:
        fcntl.flock(
            lock, fcntl.LOCK_EX
        )  # each pipeline has a server of its own, at the one port that Spark takes for it
        return subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE
        )


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Return the rows as a multiset; pipelines write timestamps as naive ones in UTC."""
    utc = pa.timestamp("us", "UTC")
    columns = [column.cast(utc) if pa.types.is_timestamp(column.type) else column for column in table.columns]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


def test_a_pipeline_stores_static_queries_and_reads_the_answers_of_a_stream(spark: SparkSession, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES)
    finish(job_of(spark, Task(str(tmp_path), late=False)))
    done = run_pipeline(tmp_path, VIEWS)
    assert done.returncode == 0, done.stderr[-3000:]
    found = {path.name: parquet_rows(path) for path in (tmp_path / "spark-warehouse").iterdir()}
    rows = pa.concat_tables(BATCHES).combine_chunks()
    best = QUERY.lower(QUERY.lift(rows))
    assert rows_of(found["best"]) == rows_of(best)
    assert rows_of(found["cheap"]) == rows_of(best.filter(pc.less(best["price"], 2.0)))
    patient = Plan(QUERY, Windows.of("20 seconds"), "ts", Watermark("1 hour"))
    assert rows_of(found["best_of_windows"]) == rows_of(answers(patient, [rows, local.Drain()]))
    wanted = answers(Task(str(tmp_path)).plan, BATCHES)
    assert wanted.num_rows
    assert rows_of(found["answered"]) == rows_of(wanted)


@pytest.mark.parametrize(
    ("definitions", "refusal"),
    [(IN_A_FLOW, "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"), (STARTED, "SESSION_MUTATION_IN_DECLARATIVE_PIPELINE")],
    ids=["a query in a flow's function", "a stream that is started"],
)
def test_spark_refuses(definitions: str, refusal: str, tmp_path: Path):
    write_batches(tmp_path / "in", BATCHES)
    done = run_pipeline(tmp_path, definitions)
    assert done.returncode != 0
    assert refusal in done.stdout + done.stderr
