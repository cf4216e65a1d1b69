"""Cases of overload: batches, windows, keys, rows and outputs far beyond the usual sizes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skypane as sp

MILLION = 1_000_000
SECOND = 1_000_000
_CHUNK = 1_000_000
_START = 1_767_225_600 * SECOND

Case = Callable[[SparkSession, Path, float], str]


def points(path: Path, rows: int, seconds: float, *, first: float = 0.0, keys: int = 1, text: int = 0) -> None:
    """Write rows with an even clock over so many seconds, a key of `keys`, four independent criteria, and a text of so many letters."""
    rng, writer, done = np.random.default_rng(rows), None, 0
    while done < rows:
        count = min(_CHUNK, rows - done)
        times = _START + ((first + (np.arange(count) + done) * seconds / rows) * SECOND).astype(np.int64)
        columns: dict[str, object] = {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "key": rng.integers(0, keys, count),
        }
        columns |= {f"c{index}": rng.random(count) for index in range(4)}
        if text:
            columns["said"] = pa.array(["x" * text]).take(pa.array(np.zeros(count, np.int64)))
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none")
        writer.write_table(table, row_group_size=_CHUNK // 8)
        done += count
    if writer is not None:
        writer.close()


def _stream(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _run(job: sp.Job) -> str:
    """Run a job to its end, its last windows too; return what it says."""
    handle = job.start(trigger="available now")
    handle.await_termination()
    handle.drain()
    totals = handle.recent_metrics(1)[-1].totals
    assert totals["read"] == totals["answered"] + totals["late"] + totals["quarantined"], totals
    return f"{totals['read']:,} rows, all of them answered"


FOUR, EIGHT = (sp.from_sense([f"c{index}" for index in range(many)], ["min"] * many) for many in (4, 8))


def large_batch(spark: SparkSession, folder: Path, scale: float) -> str:
    """Skyline, windows of 10 s every 2 s: five batches of 100,000 rows, then one of 10 million, then two of 100,000."""
    usual = int(100_000 * scale)
    clock = 0.0
    (folder / "in").mkdir()
    for number, rows in enumerate([usual] * 5 + [100 * usual] + [usual] * 2):
        points(folder / "in" / f"{number}.parquet", rows, rows / 10_000 / scale, first=clock)
        clock += rows / 10_000 / scale
    job = sp.stream(_stream(spark, folder / "in"), sp.Skyline(FOUR), time="ts", window="10 seconds", slide="2 seconds",
                    checkpoint=folder / "state", output=folder / "out")  # fmt: skip
    return _run(job)


def large_batch_late(spark: SparkSession, folder: Path, scale: float) -> str:
    """A batch of 10 million rows that is late as a whole, after five of 100,000: skyline, with a late sink."""
    usual = int(100_000 * scale)
    (folder / "in").mkdir()
    for number in range(5):
        points(folder / "in" / f"{number}.parquet", usual, 10, first=100_000 + 10 * number)
    points(folder / "in" / "5.parquet", 100 * usual, 1_000)
    job = sp.stream(_stream(spark, folder / "in"), sp.Skyline(FOUR), time="ts", window="10 seconds", slide="2 seconds",
                    progress=sp.Watermark("1 second"), checkpoint=folder / "state", output=folder / "out",
                    late=folder / "late")  # fmt: skip
    return _run_late(job)


def _run_late(job: sp.Job) -> str:
    handle = job.start(trigger="available now")
    handle.await_termination()
    totals = handle.recent_metrics(1)[-1].totals
    return f"{totals['read']:,} rows, {totals['late']:,} of them late"


def long_texts(spark: SparkSession, folder: Path, scale: float) -> str:
    """Skyline that keeps a text of 10,000 letters a row: a batch of 500,000 rows, 5 GB."""
    rows = int(500_000 * scale)
    (folder / "in").mkdir()
    points(folder / "in" / "0.parquet", rows, 100, text=100)
    wide = _stream(spark, folder / "in").withColumn("said", sf.expr("repeat(said, 100)"))
    job = sp.stream(wide, sp.Skyline(FOUR), time="ts", window="10 seconds", slide="2 seconds",
                    checkpoint=folder / "state", output=folder / "out")  # fmt: skip
    return _run(job)


def static_skyline(spark: SparkSession, _folder: Path, scale: float) -> str:
    """`sp.skyline` of 50 million rows of four criteria."""
    rows = _generated(spark, int(50 * MILLION * scale))
    return f"{sp.skyline(rows, FOUR).count():,} rows on the skyline"


def static_wide(spark: SparkSession, _folder: Path, scale: float) -> str:
    """`sp.skyline` of a million rows of eight criteria, none of them dominated, and a text of 2,000 letters: 2 GB, all of it the answer."""
    rows = _undominated(spark, int(MILLION * scale))
    return f"{_counted(sp.skyline(rows, EIGHT)):,} rows on the skyline"


def windows_wide(spark: SparkSession, _folder: Path, scale: float) -> str:
    """`sp.ask` of the same rows in windows of 10 s every 2 s, each row in five of them."""
    micros = sf.expr(f"timestamp_micros({_START} + id * {int(100 * SECOND / (MILLION * scale))})")
    rows = _undominated(spark, int(MILLION * scale)).withColumn("ts", micros)
    answer = sp.ask(rows, sp.Skyline(EIGHT), time="ts", window="10 seconds", slide="2 seconds")
    return f"{_counted(answer):,} rows of answers"


def _undominated(spark: SparkSession, rows: int) -> DataFrame:
    """Rows whose criteria add up to one: what is better in one of them is worse in another."""
    shares = [f"c{index}" for index in range(8)]
    drawn = spark.range(0, rows, 1, 8).select("id", *(sf.rand(seed).alias(name) for seed, name in enumerate(shares)))
    whole = sum((sf.col(name) for name in shares), sf.lit(0.0))
    return drawn.select(
        "id", *((sf.col(name) / whole).alias(name) for name in shares), sf.expr("repeat('x', 2000) AS said")
    )


def _counted(answer: DataFrame) -> int:
    """Count rows with all their columns: Spark asks a source of ours for no others than are needed."""
    return int(answer.select(sf.sum(sf.length("said"))).collect()[0][0] // 2_000)


def static_keys(spark: SparkSession, _folder: Path, scale: float) -> str:
    """`sp.aggregate` of 50 million rows of a million keys: count, average, maximum."""
    rows = _generated(spark, int(50 * MILLION * scale), keys=int(MILLION * scale))
    answer = sp.aggregate(rows, by="key", n=sp.count(), mean=sp.avg("c0"), most=sp.max("c1"))
    return f"{answer.count():,} keys"


def static_every_key(spark: SparkSession, _folder: Path, scale: float) -> str:
    """`sp.aggregate` of 50 million rows, each with a key of its own: count, average, maximum."""
    rows = _generated(spark, int(50 * MILLION * scale)).withColumn("key", sf.col("id"))
    answer = sp.aggregate(rows, by="key", n=sp.count(), mean=sp.avg("c0"), most=sp.max("c1"))
    return f"{answer.count():,} keys"


def _generated(spark: SparkSession, rows: int, keys: int = 1) -> DataFrame:
    criteria = (sf.rand(seed).alias(f"c{seed}") for seed in range(4))
    return spark.range(0, rows, 1, 8).select("id", (sf.col("id") % keys).alias("key"), *criteria)


def large_pane(spark: SparkSession, folder: Path, scale: float) -> str:
    """A stream of one batch with 50 million rows in one pane: skyline."""
    (folder / "in").mkdir()
    points(folder / "in" / "0.parquet", int(50 * MILLION * scale), 5)
    job = sp.stream(_stream(spark, folder / "in"), sp.Skyline(FOUR), time="ts", window="10 seconds",
                    checkpoint=folder / "state", output=folder / "out")  # fmt: skip
    return _run(job)


def million_keys(spark: SparkSession, folder: Path, scale: float) -> str:
    """A stream, count, average and maximum of a million keys: 10 batches of 1 million rows, windows of 10 s every 2 s."""
    return _aggregated(spark, folder, scale, int(MILLION * scale))


def one_key(spark: SparkSession, folder: Path, scale: float) -> str:
    """The same with one key that has everything, a quantile and a number of distinct values beside it."""
    more = {"middle": sp.approx_quantile("c2", 0.5), "different": sp.approx_count_distinct("c3")}
    return _aggregated(spark, folder, scale, 1, **more)


def one_key_kept(spark: SparkSession, folder: Path, scale: float) -> str:
    """A stream of one key with an exact number of distinct values, all of which are kept: 10 batches of 1 million rows."""
    return _aggregated(spark, folder, scale, 1, different=sp.count_distinct("c3"))


def _aggregated(spark: SparkSession, folder: Path, scale: float, keys: int, **more: Any) -> str:
    (folder / "in").mkdir()
    for number in range(10):
        points(folder / "in" / f"{number}.parquet", int(MILLION * scale), 2, first=2 * number, keys=keys)
    query = sp.Aggregate("key", n=sp.count(), mean=sp.avg("c0"), most=sp.max("c1"), **more)
    job = sp.stream(_stream(spark, folder / "in"), query, time="ts", window="10 seconds", slide="2 seconds",
                    checkpoint=folder / "state", output=folder / "out")  # fmt: skip
    return _run(job)


def backlog(spark: SparkSession, folder: Path, scale: float) -> str:
    """`sp.inputs` of one growing file that has 20 million lines of JSON when the query starts, without rows_per_trigger."""
    rows = int(20 * MILLION * scale)
    with (folder / "rows.json").open("w") as file:
        for begin in range(0, rows, _CHUNK):
            file.writelines(
                f'{{"n": {n}, "ts": {_START // SECOND + n // 10_000}}}\n'
                for n in range(begin, min(rows, begin + _CHUNK))
            )
    read = sp.inputs(spark, [str(folder / "rows.json")], "n long, ts long").withColumn("ts", sf.timestamp_seconds("ts"))
    job = sp.stream(read, sp.Aggregate("input", n=sp.count(), most=sp.max("n")), time="ts", window="10 minutes",
                    checkpoint=folder / "state", output=folder / "out")  # fmt: skip
    return _run(job)


def slow_output(spark: SparkSession, folder: Path, scale: float) -> str:
    """An output that takes 1.5 s for the answers of a second: two minutes, 20,000 rows a second."""
    seconds = 120 * scale

    def slowly(answers: DataFrame, _batch: int) -> None:
        windows = answers.toArrow().column("window_start").unique()
        time.sleep(1.5 * len(windows))

    came = spark.readStream.format("rate").option("rowsPerSecond", 20_000).load()
    rows = came.select(sf.col("timestamp").alias("ts"), *(sf.rand(seed).alias(f"c{seed}") for seed in range(4)))
    job = sp.stream(rows, sp.Skyline(FOUR), time="ts", window="1 second", checkpoint=folder / "state", output=slowly)
    handle = job.start()
    handle.await_termination(seconds)
    handle.stop()
    last = handle.recent_metrics(1)[-1]
    return f"{last.totals['read']:,} rows in {last.batch_id + 1} batches, {last.rows:,} in the last"


CASES: dict[str, Case] = {
    case.__name__: case
    for case in (
        large_batch, large_batch_late, long_texts, static_skyline, static_wide, windows_wide, static_keys,
        static_every_key, large_pane, million_keys,
        one_key, one_key_kept, backlog, slow_output,
    )
}  # fmt: skip
