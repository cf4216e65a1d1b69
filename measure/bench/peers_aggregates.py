"""Aggregates of windows by key, by skypane and by what a user may take instead: Spark's window(), DuckDB, polars, WindFlow.

    python -m measure.bench.peers_aggregates [--quick] [--only table|stream]

The query is count, average and maximum of each key over windows of an hour, every minute. Rows are spread evenly over two
hours and arrive up to a minute out of order, in eight parquet files. All ways write all answers, in turn; in a first round,
which is not measured, the answers of each are compared with those of a definition in SQL. "table" reads all
rows at once; "stream" reads a file a micro-batch, or a row at a time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from measure.bench.turns import Way, compared
from measure.peers import windflow
from measure.peers.commands import timed
from measure.results.record import Comparison, Found, Times

MINUTE: Final = 60_000_000
LENGTH: Final = 60 * MINUTE
WINDOW, SLIDE, DELAY = "1 hour", "1 minute", "1 minute"
FILES: Final = 8
BEGIN: Final = 1_767_225_600_000_000
"""2026 in microseconds, at a whole hour."""
CLOSING: Final = -1
"""Key of the row that closes the last windows where a stream cannot be drained; no answer of it is compared."""
QUERY: Final = sp.Aggregate("key", n=sp.count(), mean=sp.avg("x"), most=sp.max("x"))
_RECORD: Final = np.dtype([("window", "<i8"), ("key", "<i8"), ("n", "<i8"), ("total", "<f8"), ("most", "<f8")])


@dataclass(frozen=True)
class Case:
    """So many rows over two windows, of so many keys."""

    rows: int
    keys: int

    def table(self) -> pa.Table:
        """Return the rows in the order of arrival."""
        rng = np.random.default_rng(11)
        times = np.sort(rng.integers(0, 2 * LENGTH, self.rows))
        times = times[np.argsort(times + rng.integers(0, MINUTE, self.rows), kind="stable")] + BEGIN
        values = np.round(rng.gamma(2, 20, self.rows), 3)
        at = pa.array(times, pa.timestamp("us", "UTC"))
        return pa.table({"at": at, "key": rng.integers(0, self.keys, self.rows), "x": values})


@dataclass(frozen=True)
class Inputs:
    """The rows of a case as files, in a folder."""

    folder: Path

    @property
    def rows(self) -> Path:
        """Parquet files, in the order of arrival."""
        return self.folder / "rows"

    @property
    def closed(self) -> Path:
        """The same files, and one with a row that closes all windows."""
        return self.folder / "closed"

    @property
    def records(self) -> Path:
        """The rows as records for C++: times from the first possible start of a window."""
        return self.folder / "rows.bin"

    def write(self, table: pa.Table) -> None:
        """Write all of them."""
        step = -(-table.num_rows // FILES)
        last = pa.table({"at": [BEGIN + 4 * LENGTH], "key": [CLOSING], "x": [0.0]}).cast(table.schema)
        for folder in (self.rows, self.closed):
            folder.mkdir(parents=True)
        for number in range(FILES + 1):
            part = table.slice(number * step, step) if number < FILES else last
            for folder in (self.rows, self.closed) if number < FILES else (self.closed,):
                file = folder / f"{number}.parquet"
                # Several row groups allow Spark to divide the file into two equal tasks.
                pq.write_table(part, file, row_group_size=max(1, step // 8), compression="none")
                os.utime(file, (10**9 + number, 10**9 + number))  # Spark reads files in the order of their times
        times = table["at"].cast(pa.int64()).to_numpy() - BEGIN + LENGTH - MINUTE
        records = np.rec.fromarrays([times, table["key"].to_numpy(), table["x"].to_numpy()])
        records.tofile(self.records)


def in_spark(rows: DataFrame) -> DataFrame:
    """Return the answers of Spark's own windows."""
    grouped = rows.groupBy(sf.window("at", WINDOW, SLIDE).alias("w"), "key")
    found = grouped.agg(sf.count("*").alias("n"), sf.avg("x").alias("mean"), sf.max("x").alias("most"))
    return found.select(sf.col("w.start").alias("window_start"), "key", "n", "mean", "most")


def of_table(spark: SparkSession, inputs: Inputs) -> dict[str, Way]:
    """Return the ways to answer a table."""

    def ours(target: Path) -> None:
        rows = spark.read.parquet(str(inputs.rows))
        sp.ask(rows, QUERY, time="at", window=WINDOW, slide=SLIDE, output=target)

    def spark_windows(target: Path) -> None:
        in_spark(spark.read.parquet(str(inputs.rows))).write.parquet(str(target))

    return {
        "skypane": ours,
        "Spark, window()": spark_windows,
        "DuckDB": lambda target: by_duckdb(inputs, target),
        "polars": lambda target: by_polars(inputs, target),
    }


def of_stream(spark: SparkSession, inputs: Inputs) -> dict[str, Way]:
    """Return the ways to answer a stream."""
    return {
        "skypane": lambda target: streamed(spark, inputs, target),
        "Spark, window()": lambda target: streamed_by_spark(spark, inputs, target),
        "WindFlow": lambda target: by_windflow(inputs, target),
    }


def arriving(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the stream of files in a folder, one a micro-batch."""
    schema = "at timestamp, key long, x double"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def streamed(spark: SparkSession, inputs: Inputs, target: Path) -> None:
    """Answer the stream by skypane."""
    job = sp.stream(
        arriving(spark, inputs.rows), QUERY, time="at", window=WINDOW, slide=SLIDE, progress=sp.Watermark(DELAY),
        checkpoint=str(target.with_suffix(".checkpoint")), output=str(target),
    )  # fmt: skip
    handle = job.start(trigger="available now")
    handle.await_termination()
    handle.drain()


def streamed_by_spark(spark: SparkSession, inputs: Inputs, target: Path) -> None:
    """Answer the stream by Spark's own windows, with its state in memory."""
    answers = in_spark(arriving(spark, inputs.closed).withWatermark("at", DELAY))
    written = answers.writeStream.format("parquet").option("checkpointLocation", str(target.with_suffix(".checkpoint")))
    query = written.outputMode("append").trigger(availableNow=True).start(str(target))
    query.awaitTermination()


def by_duckdb(inputs: Inputs, target: Path) -> None:
    """Answer the table by DuckDB in the form that is its fastest: sums of minutes, on a grid of all keys and minutes, framed by rows."""
    last, minutes = LENGTH // MINUTE - 1, f'epoch_us("at") // {MINUTE}'
    statement = f"""
        COPY (
            WITH slices AS (SELECT key, {minutes} AS pane, count(*) AS n, sum(x) AS total, max(x) AS most
                            FROM '{inputs.rows}/*.parquet' GROUP BY ALL),
                 span AS (SELECT unnest(range(min(pane), max(pane) + {last + 1})) AS pane FROM slices),
                 grid AS (SELECT key, pane FROM (SELECT DISTINCT key FROM slices), span),
                 framed AS (SELECT pane, key, sum(n) OVER f AS n, sum(total) OVER f AS total, max(most) OVER f AS most
                            FROM grid LEFT JOIN slices USING (key, pane)
                            WINDOW f AS (PARTITION BY key ORDER BY pane ROWS BETWEEN {last} PRECEDING AND CURRENT ROW))
            SELECT make_timestamp((pane - {last}) * {MINUTE}) AS window_start, key, n::bigint AS n, total / n AS mean, most
            FROM framed WHERE n > 0
        ) TO '{target}' (FORMAT parquet)"""  # noqa: S608 - numbers and paths of ours
    with _connected() as connection:
        connection.execute(statement)


def by_polars(inputs: Inputs, target: Path) -> None:
    """Answer the table by polars' windows, which begin early enough to contain a key's first row at their end."""
    rows = pl.scan_parquet(str(inputs.rows / "*.parquet")).sort("at")
    grouped = rows.group_by_dynamic("at", every="1m", period="1h", offset="-59m", group_by="key")
    mean, most = pl.col("x").mean().alias("mean"), pl.col("x").max().alias("most")
    answers = grouped.agg(pl.len().cast(pl.Int64).alias("n"), mean, most).rename({"at": "window_start"})
    answers.collect().write_parquet(target, compression="snappy")  # as Spark and DuckDB compress


def by_windflow(inputs: Inputs, target: Path) -> Times:
    """Answer the stream by WindFlow."""
    program = windflow.program("keyed_windows")
    return timed([program, inputs.records, target, str(LENGTH), str(MINUTE), str(MINUTE)], target.parent)


def answers(name: str, target: Path) -> pa.Table:
    """Return what a way has written: window (in microseconds since 1970), key, n, mean, most."""
    if name == "WindFlow":
        found = np.fromfile(target, _RECORD)
        starts = found["window"] * MINUTE - LENGTH + MINUTE + BEGIN
        mean = found["total"] / found["n"]
        return pa.table({"w": starts, "key": found["key"], "n": found["n"], "mean": mean, "most": found["most"]})
    files = f"{target}/*.parquet" if target.is_dir() else str(target)
    return _selected(f"SELECT epoch_us(window_start) AS w, key, n, mean, most FROM read_parquet('{files}')")  # noqa: S608 - a path of ours


class Check:
    """Compares answers with those of a definition: every row in each window that contains it."""

    def __init__(self, inputs: Inputs) -> None:
        overlap, minutes = LENGTH // MINUTE, f'epoch_us("at") // {MINUTE}'
        # First by minutes, so that fewer rows are expanded; nothing else of what the ways do is used.
        self.definition = _selected(f"""
            SELECT (pane - back) * {MINUTE} AS w, key, sum(n)::bigint AS n, sum(total) / sum(n) AS mean, max(most) AS most
            FROM (SELECT key, {minutes} AS pane, count(*) AS n, sum(x) AS total, max(x) AS most
                  FROM '{inputs.rows}/*.parquet' GROUP BY ALL), range(0, {overlap}) AS b(back)
            GROUP BY w, key""")  # noqa: S608 - numbers and paths of ours

    @property
    def count(self) -> int:
        """How many answers there are."""
        return int(self.definition.num_rows)

    def __call__(self, name: str, target: Path) -> None:
        """Raise AssertionError unless these are the answers."""
        found, definition = answers(name, target), self.definition
        theirs = found.filter(pc.not_equal(found["key"], CLOSING))
        with _connected() as connection:
            connection.register("theirs", theirs)
            connection.register("definition", definition)
            wrong = connection.execute(_WRONG).fetchone()
        assert wrong == (0, 0, 0), f"{name}: answers too many, missing and wrong: {wrong}"
        assert theirs.num_rows == definition.num_rows, f"{name}: {theirs.num_rows} answers, some of them twice"


_WRONG: Final = """
    SELECT count(*) FILTER (definition.key IS NULL), count(*) FILTER (theirs.key IS NULL),
           count(*) FILTER (theirs.n <> definition.n OR theirs.most <> definition.most
                            OR abs(theirs.mean - definition.mean) > 1e-9 * abs(definition.mean))
    FROM theirs FULL JOIN definition USING (w, key)"""
"""Counts the answers that only one of the two has, and those that differ."""


def _selected(statement: str) -> pa.Table:
    """Return what a query selects."""
    with _connected() as connection:
        return connection.sql(statement).to_arrow_table()


def _connected() -> duckdb.DuckDBPyConnection:
    """Return a connection with two threads."""
    connection = duckdb.connect(config={"threads": 2})
    connection.execute("SET preserve_insertion_order = false")
    return connection


SUBJECTS: Final[Mapping[str, str]] = {"table": "aggregates of a table", "stream": "aggregates of a stream"}


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, one round")
    parser.add_argument("--only", choices=SUBJECTS, help="one of the comparisons")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    case = Case(20_000, 500) if arguments.quick else Case(1_000_000, 16_384)
    spark = sp.session("local[2]", "skypane-bench", {"spark.driver.memory": "6g"})
    return [
        measured(spark, case, kind, 1 if arguments.quick else arguments.rounds)
        for kind in SUBJECTS
        if arguments.only in (None, kind)
    ]


def measured(spark: SparkSession, case: Case, kind: str, rounds: int) -> Comparison:
    """Return the comparison of a table's or a stream's ways."""
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as folder:
        inputs, scratch = Inputs(Path(folder) / "inputs"), Path(folder) / "answers"
        scratch.mkdir()
        inputs.write(case.table())
        check = Check(inputs)
        ways = (of_table if kind == "table" else of_stream)(spark, inputs)
        named = f"{case.keys:,} keys, {case.rows:,} rows, {check.count:,} answers"
        return compared(SUBJECTS[kind], named, case.rows, ways, rounds=rounds, scratch=scratch, check=check)


if __name__ == "__main__":
    main()
