"""Scenarios of a client of Spark Connect: starts, stops, kills and errors; connect_main.py runs one."""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.runtime import streams
from tests.runtime.continuous_streams import job_of, plain
from tests.runtime.streams import SECOND, late_rows, parquet_rows, stream_job, write_batches

import skypane as sp
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.windows import Windows

BATCHES = late_rows(27, batches=6, rows=60)
SCHEMA = BATCHES[0].schema
WINDOWS = Windows(50 * SECOND, 20 * SECOND)
SKYLINE = sp.Skyline("price MIN, rating MAX", ("sensor",))
LOAD = sp.Aggregate(("sensor",), n=sp.count(), total=sp.sum("weight"))


def plan(query: Query) -> Plan:
    return Plan(query, WINDOWS, "ts", sp.Watermark("20 seconds"))


def job(spark: SparkSession, folder: Path, query: Query = SKYLINE, **options: Any) -> sp.Job:
    given: dict[str, Any] = {"output": str(folder / "out"), "window": WINDOWS, "progress": sp.Watermark("20 seconds")}
    return stream_job(spark, folder, query, SCHEMA, **given | options)


def finish(job: sp.Job, **options: Any) -> list[int]:
    """Run a job over all that is there; return the batches that the listener received."""
    return [metrics.batch_id for metrics in streams.finish(job, **options)]


def restart(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Run half of the batches beside the first offsets of a killed server; in another process beside it the rest; drain."""
    streams.leave_unfinished(folder / "checkpoint")
    write_batches(folder / "in", BATCHES[:3])
    first = finish(job(spark, folder))
    write_batches(folder / "in", BATCHES[3:], first=3)
    second = finish(job(spark, folder))
    handle = job(spark, folder).start()
    drained = handle.drain()
    again = handle.drain()
    return {
        "batches": [first, second],
        "drained": None if drained is None else drained.batch_id,
        "again": again is None,
        "rows": sum(metrics.rows for metrics in handle.recent_metrics(100)),
    }


def handled(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Use everything that a handle has on a query that waits for rows."""
    write_batches(folder / "in", BATCHES[:2])
    handle = job(spark, folder).start()
    handle.query.processAllAvailable()
    before, active = handle.explain(), handle.status["active"]
    handle.scale(plq=3, wlq=2)
    write_batches(folder / "in", BATCHES[2:3], first=2)
    handle.query.processAllAvailable()
    found = {
        "active": active,
        "before": before,
        "after": handle.explain(),
        "workers": handle.recent_metrics(1)[0].workers,
        "inputs": handle.inputs().num_rows,
        "front": error_of(handle.front),
        "scaled": error_of(lambda: handle.scale(plq=0)),
        "shown": repr(handle),
    }
    handle.stop()
    return found | {"ended": handle.await_termination(60), "error": handle.status["error"]}


def stopped(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Stop a query between batches that come one right after the other; then run the rest."""
    write_batches(folder / "in", BATCHES)
    begun = Event()
    handle = job(spark, folder).start(on_batch=lambda _: begun.set())
    assert begun.wait(600)
    handle.stop(timeout=600)
    ended, error, first = handle.await_termination(600), handle.status["error"], len(handle.recent_metrics(100))
    second = finish(job(spark, folder))
    return {"ended": ended, "error": error, "batches": [*range(first), *second]}


def interrupted(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Interrupt a start when the server has begun the query, and nobody knows it yet; then run all."""
    from pyspark.sql.connect.streaming.readwriter import DataStreamWriter  # noqa: PLC0415 - what this session writes with

    write_batches(folder / "in", BATCHES)
    start = DataStreamWriter.start

    def start_interrupted(writer: DataStreamWriter) -> Any:
        query = start(writer)
        signal.raise_signal(signal.SIGINT)
        return query

    DataStreamWriter.start = start_interrupted  # type: ignore[method-assign, assignment]
    try:
        job(spark, folder).start()
        ended = "not interrupted"
    except KeyboardInterrupt:
        ended = "interrupted"
    DataStreamWriter.start = start  # type: ignore[method-assign]
    active = len(spark.streams.active)
    finish(job(spark, folder))
    return {"ended": ended, "active": active}


def killed(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Kill the process beside the server in the sink of batch 2, the first time; then start the job again."""
    write_batches(folder / "in", BATCHES)
    (folder / "out").mkdir()

    def deliver(rows: Any, batch_id: int) -> None:
        killed = folder / "killed"
        if batch_id == 2 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        pq.write_table(rows.toArrow(), folder / "out" / f"{batch_id:05d}.parquet")

    handle = job(spark, folder, output=deliver).start(trigger="available now")
    error = error_of(lambda: handle.await_termination(600))
    return {"error": error, "batches": finish(job(spark, folder, output=deliver))}


def failures(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Collect what a user reads if something is wrong."""
    write_batches(folder / "in", BATCHES[:2])

    def refuse(_: Any, batch_id: int) -> None:
        raise ValueError(f"the table of batch {batch_id} is locked\nwith a second line")

    handle = job(spark, folder, output=refuse, checkpoint=str(folder / "failing")).start(trigger="available now")
    sink = error_of(lambda: handle.await_termination(600))
    finish(job(spark, folder))
    lock = open(folder / "in" / ".lock", "w")  # noqa: PTH123, SIM115 - cannot be pickled
    return {
        "sink": sink,
        "status": handle.status["error"],
        "other query": error_of(lambda: job(spark, folder, LOAD).start()),
        "refused": len(job(spark, folder, LOAD).changes().refused),
        "same": len(job(spark, folder).changes().lines),
        "memory": error_of(lambda: job(spark, folder, output=sp.Memory())),
        "pickle": error_of(lambda: job(spark, folder, output=lambda *_: lock.write("")).start()),
    }


def without_late_sink(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Hold a row far ahead of the others for a late sink, then start without one; collect the warnings of both starts."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("skypane").addHandler(handler)
    at = SCHEMA.get_field_index("ts")
    far = BATCHES[1].slice(0, 1)
    far = far.set_column(at, SCHEMA.field(at), pc.add(far["ts"], pa.scalar(timedelta(days=365))))
    write_batches(folder / "in", [BATCHES[0], far])
    patient: dict[str, Any] = {"progress": sp.KSlack(patience=30)}
    first, before = finish(job(spark, folder, **patient, late=str(folder / "late"))), len(said)
    write_batches(folder / "in", BATCHES[2:3], first=2)
    second = finish(job(spark, folder, **patient))
    return {"batches": [first, second], "with": said[:before], "without": said[before:]}


def continuous(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Keep the front of a continuous skyline, and answer aggregates beside it."""
    write_batches(folder / "in", BATCHES)
    front = streams.ended(job_of(spark, folder, checkpoint=folder / "kept", output=folder / "updates")).front()
    finish(job(spark, folder, LOAD))
    return {"front": sorted(front["id"].to_pylist()), "updates": plain(parquet_rows(folder / "updates"))}


def expressions(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Answer queries of expressions, and those of columns made before; the names of the answers, too, are compared."""
    write_batches(folder / "in", BATCHES)
    rows = spark.read.parquet(str(folder / "in"))
    made = rows.withColumns({"cost": sf.expr("price * weight"), "who": sf.expr("upper(sensor)")})
    product = sf.col("price") * rows.weight
    chosen = sp.skyline(rows, sp.low(product) * sp.high("rating")), sp.skyline(made, "cost MIN, rating MAX")
    sums = (
        sp.aggregate(rows, by=sf.upper("sensor").alias("who"), total=sp.sum("price * weight"), most=sp.max(product)),
        sp.aggregate(made, by="who", total=sp.sum("cost"), most=sp.max("cost")),
    )
    counts = sp.aggregate(rows, by=rows.sensor, n=sp.count()), rows.groupBy("sensor").agg(sf.count("*").alias("n"))
    pairs = {"skyline": (chosen[0], chosen[1].drop("cost", "who")), "aggregate": sums, "plain": counts}
    alike = {name: _rows(one) == _rows(other) and one.columns == other.columns for name, (one, other) in pairs.items()}
    most = sp.max(sf.col("price") * sf.col("weight"))
    batches = finish(job(spark, folder, sp.Aggregate(sf.col("sensor"), total=sp.sum("price * weight"), most=most)))
    return {**alike, "batches": len(batches)}


def _rows(frame: DataFrame) -> Counter[str]:
    return Counter(map(repr, frame.toArrow().to_pylist()))


def error_of(call: Callable[[], object]) -> str | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
        return f"{type(error).__name__}: {error}"
    return None


Scenario: TypeAlias = Callable[[SparkSession, Path], dict[str, Any]]


def by_name(*scenarios: Scenario) -> dict[str, Scenario]:
    return {scenario.__name__: scenario for scenario in scenarios}


SCENARIOS = by_name(
    restart, handled, stopped, interrupted, killed, failures, without_late_sink, continuous, expressions
)
