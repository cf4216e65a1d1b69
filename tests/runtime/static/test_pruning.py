"""Columns that no one needs stay where they are: Spark does not read them, and Python does not see them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from tests.rows import Counts, multiset

import skypane as sp

WIDTH = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred columns of numbers beside a time and a label."""
    place = tmp_path_factory.mktemp("wide")
    columns = {"time": pa.array([0, 5, 12, 25], pa.timestamp("s", "UTC")), "label": ["a", "b", "a", "a"]}
    columns |= {f"c{index}": [float(index)] * 4 for index in range(WIDTH)}
    pq.write_table(pa.table(columns), place / "rows.parquet")
    return place


def test_spark_reads_from_the_files_what_the_query_reads(
    folder: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
):
    sp.ask(spark.read.parquet(str(folder)), Counts("label"), time="time", window="10 seconds").explain()
    plan = capsys.readouterr().out
    assert "ReadSchema: struct<time:timestamp,label:string>" in plan
    assert "c99" not in plan


def test_a_stream_without_a_late_sink_reads_as_little(folder: Path, spark: SparkSession, tmp_path: Path):
    """A column that no one may read is not read, from the file to the answer; for a late sink whole rows are kept."""
    rows = spark.readStream.schema(spark.read.parquet(str(folder)).schema).parquet(str(folder))
    rows = rows.withColumn("costly", sf.raise_error(sf.lit("no query needs this")).cast("double"))
    memory = sp.Memory()

    def job(name: str, late: Path | None = None) -> sp.Job:
        return sp.stream(
            rows, Counts("label"), time="time", window="10 seconds", progress=sp.Watermark("0 seconds"),
            checkpoint=tmp_path / name, output=memory, late=late,
        )  # fmt: skip

    pruned = job("pruned")
    assert pruned.rows.columns == pruned.settings.schema.names == ["time", "label"]
    assert pruned.start(trigger="available now").await_termination(300)
    answered = memory.table().select(["label", "n"])
    assert multiset(answered) == multiset(pa.table({"label": ["a", "b", "a"], "n": [1, 1, 1]}))
    whole = job("whole", tmp_path / "late")
    assert whole.settings.schema.names == rows.columns
