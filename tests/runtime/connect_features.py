"""Scenarios of a client of Spark Connect: each way of running a query, each source and sink, over Spark Connect."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from tests.engine.test_amended import QUERIES as AMENDED
from tests.engine.test_amended import job_of as amended_job
from tests.engine.test_readmission import REASON, batches_with_nulls, repair
from tests.engine.test_streams import ASKED
from tests.engine.test_streams import WINDOWS as SHARED
from tests.prometheus.scraped import text_at, total, value
from tests.runtime.connect_driver import BATCHES, LOAD, SCHEMA, SKYLINE, WINDOWS, by_name, finish, job
from tests.runtime.streams import drained, ended, read_batches, write_batches

import skypane as sp
from skypane.runtime.spark.sources.recordings import write_recording
from skypane.runtime.spark.sources.replay import replay

PATIENT: Final = sp.Watermark("1 hour")
"""A policy under which no row of BATCHES is late, however they are cut into micro-batches."""
PROMPT: Final = sp.Watermark("10 seconds")
ALL: Final = pa.concat_tables(BATCHES).combine_chunks()
STATIC: Final[dict[str, Callable[[Any], Any]]] = {
    "skyline": lambda rows: sp.skyline(rows, "price MIN, rating MAX"),
    "top k": lambda rows: sp.top_k(rows, 5, "rating - price"),
    "k-dominant": lambda rows: sp.k_dominant(rows, 2, "price MIN, rating MAX, weight MIN"),
    "top delta": lambda rows: sp.top_delta(rows, 4, "price MIN, rating MAX, weight MIN"),
}

IN_SQL: Final = {
    "skyline": "SELECT * FROM skypane_skyline(TABLE(offers), 'price MIN, rating MAX')",
    "top k": "SELECT * FROM skypane_top_k(TABLE(offers), 5, 'rating - price')",
    "k-dominant": "SELECT * FROM skypane_k_dominant(TABLE(offers), 2, 'price MIN, rating MAX, weight MIN')",
    "top delta": "SELECT * FROM skypane_top_delta(TABLE(offers), 4, 'price MIN, rating MAX, weight MIN')",
}
"""The same queries by table functions."""
LENGTHS: Final = f"window => '{WINDOWS.length} us', slide => '{WINDOWS.slide} us'"


def several(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Answer four queries over one stream."""
    write_batches(folder / "in", BATCHES)
    finish(
        sp.streams(
            read_batches(spark, folder / "in", SCHEMA), ASKED, time="ts", window=SHARED, source="sensor",
            output={name: folder / name for name in ASKED}, progress=sp.Watermark("20 seconds"), checkpoint=folder / "checkpoint",
        )
    )  # fmt: skip
    return {}


def having(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Filter answers by a condition that Spark evaluates, and return why a Column is refused."""
    write_batches(folder / "in", BATCHES)
    finish(job(spark, folder, sp.Aggregate("sensor", n=sp.count(), having="abs(n) > 3 AND sensor LIKE 'a%'")))
    by_column = sp.Aggregate("sensor", n=sp.count(), having=sf.abs("n") > 3)
    return {"refused": _refused(lambda: job(spark, folder, by_column))}


def stays(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Write stays, and read them as the rows of windows."""
    write_batches(folder / "in", BATCHES)
    ended(job(spark, folder, answers="stays", progress=PATIENT)).drain()
    pq.write_table(sp.read_answers(spark, str(folder / "out")).toArrow(), folder / "read.parquet")
    return {}


def readmitted(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Put rejected rows, repaired, back into their windows, in the middle of the stream."""
    batches, query = batches_with_nulls(), AMENDED["skyline"]
    write_batches(folder / "in", batches[:4])
    metrics = ended(amended_job(spark, folder, query, batches[0].schema)).readmit(REASON, repair)
    write_batches(folder / "in", batches[4:], first=4)
    finish(amended_job(spark, folder, query, batches[0].schema))
    return {"rows": None if metrics is None else metrics.rows}


def begun(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Let another query begin where the first one, which is drained, has stopped to read."""
    write_batches(folder / "in", BATCHES[:3])
    ended(job(spark, folder, progress=PROMPT)).drain()
    write_batches(folder / "in", BATCHES[3:], first=3)
    another = job(spark, folder, LOAD, progress=PROMPT, output=str(folder / "another"))
    begins = another.changes("at_offsets").begins
    handle = ended(another, begin="at_offsets")
    handle.drain()
    return {"begins": begins, "rows": [metrics.rows for metrics in handle.recent_metrics(4)]}


class DyingFolder(sp.Directory):
    """Ends the batch that it has taken, before its commit."""

    def write(self, *batch: Any) -> None:
        super().write(*batch)
        raise OSError("the driver dies")


def unfinished(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Change a query whose driver has died after a delivery, and beside it one whose driver has not."""
    for name, sink in (("died", DyingFolder), ("calm", sp.Directory)):
        stream, output = folder / name, str(folder / name / "out")
        write_batches(stream / "in", BATCHES[:3])
        finish(job(spark, stream, LOAD, progress=PROMPT))
        write_batches(stream / "in", BATCHES[3:4], first=3)
        with suppress(sp.SkypaneError, PySparkException):
            finish(job(spark, stream, LOAD, progress=PROMPT, output=sink(output)))
        write_batches(stream / "in", BATCHES[4:], first=4)
        changed = sp.Aggregate("sensor", n=sp.count(), most=sp.max("price"))
        drained(job(spark, stream, changed, progress=PROMPT))
    return {}


def monitored(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Serve the metrics of a query, which is drained."""
    write_batches(folder / "in", BATCHES)
    seen: list[sp.BatchMetrics] = []
    with sp.MetricsServer("127.0.0.1:0") as server:
        handle = job(spark, folder).start(trigger="available now", on_batch=seen.append)
        server.watch(handle)
        assert handle.await_termination(600)
        handle.drain()
        text = text_at(server.url)
    counters = ("batches", "rows", "windows")
    return {
        **{name: total(text, f"skypane_{name}_total") for name in counters},
        "running": value(text, "skypane_running", stream="checkpoint"),
        "recorded": [metrics.batch_id for metrics in handle.recent_metrics(100)],
        "seen": [metrics.batch_id for metrics in seen],
        "answered": sum(metrics.windows for metrics in seen),
    }


def elastic(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Have a policy change the workers."""
    write_batches(folder / "in", BATCHES)
    policy = sp.Threshold(max_workers=8, target=0.2, tolerance=0.05, every=2)
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=2, elastic=policy)
    handle = ended(job(spark, folder, workers=workers))
    return {"explained": handle.explain(), "refused": _refused(lambda: handle.scale(plq=9))}


def static(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Answer queries over a table, and windows over it."""
    rows = spark.createDataFrame(ALL)
    answers: dict[str, Any] = {name: sorted(query(rows).toArrow()["id"].to_pylist()) for name, query in STATIC.items()}
    pq.write_table(sp.ask(rows, SKYLINE, time="ts", window=WINDOWS).toArrow(), folder / "asked.parquet")
    return answers | {"refused": _refused(lambda: sp.ask(rows, SKYLINE, output=folder / "out"))}


def in_sql(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Answer the queries over a table, and windows over it, by table functions; and a call with a wrong column."""
    spark.createDataFrame(ALL).createOrReplaceTempView("offers")
    sp.register(spark)
    answers = {name: sorted(spark.sql(text).toArrow()["id"].to_pylist()) for name, text in IN_SQL.items()}
    call = f"skypane_skyline(TABLE(offers), 'price MIN, rating MAX', by => 'sensor', time => 'ts', {LENGTHS})"
    pq.write_table(spark.sql(f"SELECT * FROM {call}").toArrow(), folder / "asked.parquet")  # noqa: S608 - of constants
    try:
        error = str(spark.sql("SELECT * FROM skypane_skyline(TABLE(offers), 'prise MIN')").columns)
    except PySparkException as refused:
        error = str(refused)
    return {"answers": answers, "error": error}


def replayed(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Read a recording by Spark's interface for sources in Python, restarted once."""
    write_recording(ALL, folder / "rows.arrow")

    def started() -> sp.StreamHandle:
        rows = replay(spark, folder / "rows.arrow", arrival="sent", rows_per_trigger=100)
        return _replayed_job(rows, folder).start(trigger="available now")

    first, second = started(), started()
    assert first.await_termination(600)
    assert second.await_termination(600)
    second.drain()
    return {"rows": sum(metrics.rows for metrics in second.recent_metrics(100))}


def inputs(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Read many files, one of which joins later."""
    for sensor in ("a", "b"):
        _write_csv(folder / f"{sensor}.csv", ALL.filter(pc.equal(ALL["sensor"], sensor)))
    columns = "id long, ts timestamp, sensor string, price double, rating double, weight long, sent timestamp"
    rows = sp.inputs(spark, [f"{folder}/*.csv"], columns, rows_per_trigger=150, time_column="ts")
    finish(_replayed_job(rows, folder))
    _write_csv(folder / "c.csv", ALL.filter(pc.is_null(ALL["sensor"])))
    handle = ended(_replayed_job(rows, folder))
    names = sorted(Path(name).name for name in handle.inputs()["input"].to_pylist())
    handle.drain()
    return {"inputs": names}


def rate(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Read Spark's own source of numbers for a while."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    handle = sp.stream(
        rows, sp.Aggregate(n=sp.count(), last=sp.max("value")), time="timestamp", window="1 second",
        output=folder / "out", checkpoint=folder / "checkpoint", progress=sp.Watermark("1 second"),
    ).start()  # fmt: skip
    while sum(metrics.rows for metrics in handle.recent_metrics(100)) < 100:
        handle.await_termination(0.2)
    handle.stop()
    handle.await_termination()
    handle.drain(now=True)  # Spark may have begun a further batch, which nobody reads
    return {"rows": sum(metrics.rows for metrics in handle.recent_metrics(100))}


def topics(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Read a topic of Kafka, and write into another one; the broker's address and both topics are in a file."""
    broker, source, target = json.loads((folder / "broker.json").read_text())
    columns = "id long, ts timestamp, sensor string, price double, rating double, weight long"
    listing = [{"kafka": broker, "topic": source}]
    rows = sp.inputs(spark, listing, columns, rows_per_trigger=100, time_column="ts")
    handle = ended(_replayed_job(rows, folder, output=sp.Kafka(broker, target, key=["window_start", "sensor"])))
    handle.drain()
    return {"rows": sum(metrics.rows for metrics in handle.recent_metrics(100))}


def _replayed_job(rows: Any, folder: Path, output: Any = None) -> sp.Job:
    places: dict[str, Any] = {
        "checkpoint": folder / "checkpoint",
        "output": folder / "out" if output is None else output,
    }
    return sp.stream(rows, LOAD, time="ts", window=WINDOWS, progress=PATIENT, **places)


def _write_csv(path: Path, rows: pa.Table) -> None:
    plain = rows.set_column(1, "ts", pc.strftime(rows["ts"], "%Y-%m-%dT%H:%M:%SZ"))
    plain = plain.set_column(6, "sent", pc.strftime(rows["sent"], "%Y-%m-%dT%H:%M:%SZ"))
    pa_csv.write_csv(plain, path, pa_csv.WriteOptions(include_header=False, quoting_style="none"))


def _refused(call: Callable[[], object]) -> str:
    try:
        call()
    except sp.ConfigError as error:
        return str(error)
    return "not refused"


SCENARIOS: Final = by_name(
    several,
    having,
    stays,
    readmitted,
    begun,
    unfinished,
    monitored,
    elastic,
    static,
    in_sql,
    replayed,
    inputs,
    rate,
    topics,
)
