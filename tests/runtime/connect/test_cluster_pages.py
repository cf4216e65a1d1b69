"""The commands of docs/clusters.md for spark-submit and a standalone cluster, run unchanged except for names of hosts and folders."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.checkout import PYTHONPATH, ROOT
from tests.runtime.cluster import standalone
from tests.test_snippets import blocks

import skypane as sp
from skypane.runtime.spark.machine.java import find_java

PAGE = ROOT / "docs" / "clusters.md"
MASTER = "spark://HOST:7077"
PYTHON = "/opt/skypane/bin/python"
MINUTES = 10
OFFERS = "ts timestamp, shop string, city string, price double, rating double"


def submitted(cluster: bool) -> str:
    """Return the page's command that submits its program to a cluster, or to one machine."""
    lines = [line for body in blocks(PAGE, "sh") for line in body.splitlines()]
    (found,) = [line for line in lines if "spark-submit" in line and (MASTER in line) == cluster]
    return found


def test_the_page_names_classes_that_start_a_cluster():
    """tests/runtime/cluster.py starts the same classes, with ports of its own."""
    classes = [line.split()[1] for body in blocks(PAGE, "sh") for line in body.splitlines() if "spark-class" in line]
    assert classes == ["org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"]


def written(spark: SparkSession, folder: Path) -> int:
    """Write the program, and offers of three hours; return their number."""
    (program,) = blocks(PAGE, "python")
    (folder / "best_offers.py").write_text(program)
    offers = spark.range(10_800).selectExpr(
        "timestamp'2026-01-01 08:00:00' + make_dt_interval(0, 0, 0, id) AS ts",
        "concat('shop ', id % 5) AS shop",
        "element_at(array('Basel', 'Bern', 'Chur'), 1 + CAST(id % 3 AS INT)) AS city",
        "round(20 + 80 * rand(2), 2) AS price",
        "round(5 * rand(3), 1) AS rating",
    )
    offers.repartition(4).write.json(str(folder / "offers"))
    return offers.count()


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [False, True], ids=["spark-submit", "standalone"])
def test_the_commands_answer_the_page_s_query(cluster: bool, spark: SparkSession, tmp_path: Path):
    assert written(spark, tmp_path) == 10_800
    master: AbstractContextManager[str] = standalone(tmp_path / "cluster", cores=2) if cluster else nullcontext("")
    with master as url:
        command = submitted(cluster).replace(MASTER, url).replace(PYTHON, sys.executable)
        assignments = re.match(r"((?:\w+=\S+ )*)(.*)", command)
        assert assignments is not None
        own = dict(one.split("=", 1) for one in assignments[1].split())
        done = subprocess.run(
            shlex.split(assignments[2]), cwd=tmp_path, env=environment() | own, capture_output=True, text=True,
            check=False, timeout=60 * MINUTES,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    assert_best(spark, tmp_path)


def assert_best(spark: SparkSession, folder: Path) -> None:
    """Compare the answers with those of a batch query; the last of three hours is open until later rows come."""
    answers = pq.read_table(folder / "hourly-offers")
    hours = set(answers["window_start"].to_pylist())
    assert 0 < len(hours) < 3
    rows = spark.read.schema(OFFERS).json(str(folder / "offers"))
    best = sp.skyline(rows, "price MIN, rating MAX", by="city", time="ts", window="1 hour").toArrow()
    best = best.select(answers.schema.names).cast(answers.schema)
    wanted = [row for row in best.to_pylist() if row["window_start"] in hours]
    assert Counter(map(str, answers.to_pylist())) == Counter(map(str, wanted))


def environment() -> dict[str, str]:
    """Return that of a shell in which the environment with PySpark and skypane is activated."""
    home = Path(pyspark.__file__).parent
    path = os.pathsep.join([str(Path(sys.executable).parent), str(home / "bin"), os.environ["PATH"]])
    return os.environ | {
        "PATH": path, "SPARK_HOME": str(home), "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": PYTHONPATH, "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
