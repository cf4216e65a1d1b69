"""Batches as files that Spark reads, one batch at a time; what a run has written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from skypane.runtime.spark.spark_schema import spark_schema


def write(folder: Path, batches: Sequence[pa.Table], files: int, first: int) -> None:
    """Write batches as so many files each, which Spark reads in the order of their times of modification."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(batches, first):
        for part in range(files):
            draft = folder / f".{number:05d}-{part}"
            pq.write_table(rows.take(pa.array(np.arange(part, rows.num_rows, files))), draft)
            os.utime(draft, (1_600_000_000 + number, 1_600_000_000 + number))
            draft.rename(folder / f"{number:05d}-{part}.parquet")


def stream(spark: SparkSession, folder: Path, schema: pa.Schema, files: int) -> DataFrame:
    """Return the stream whose micro-batches are those that write() wrote."""
    reader = spark.readStream.schema(spark_schema(schema)).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder))


def static(spark: SparkSession, folder: Path, rows: pa.Table, files: int) -> DataFrame:
    """Return rows as a static DataFrame, read from so many files."""
    write(folder, [rows], files, 0)
    return spark.read.schema(spark_schema(rows.schema)).parquet(str(folder))


def read(folder: Path, schema: pa.Schema) -> pa.Table:
    """Return the rows of an output folder, in the order of the names of its files."""
    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    return in_schema(pa.concat_tables(tables), schema) if tables else schema.empty_table()


def in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of a schema: of lists Spark and parquet name the elements as they like."""
    return rows.select(schema.names).combine_chunks().cast(schema)
