"""Run by test_chain as a process of its own: chains of two stages of windows, each of which stands still at a place of its work.

When all do, the process kills itself. Its argument is a folder with a folder for each chain, which has `in`, the rows of the
first stage, and stop.json, a Stop. Between the stages is the folder `out/counts`, or a topic of Kafka with the name of the chain.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from tests.nature import places
from tests.runtime.driver import PATIENT, answered_by_workers, die, replace_method
from tests.runtime.streams import SECOND, ended, late_rows, read_batches

import skypane as sp
from skypane.plan import Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.sinks.topic_writer import TopicWriter
from skypane.windows import Windows

SCHEMA = late_rows(0, batches=1).pop().schema
COUNTS = "window_start timestamp, window_end timestamp, sensor string, n bigint"
FIRST: Final = {
    "counts": Plan(
        sp.Aggregate("sensor", n=sp.count()), Windows(5 * SECOND, 5 * SECOND), "ts", sp.Watermark("20 seconds")
    ),
    "best": Plan(
        sp.Skyline("price MIN, rating MAX"), Windows(50 * SECOND, 20 * SECOND), "ts", sp.Watermark("20 seconds")
    ),
}
SECOND_STAGE: Final = Plan(
    sp.Aggregate("sensor", total=sp.sum("n"), windows=sp.count()),
    Windows(30 * SECOND, 30 * SECOND),
    "window_start",
    sp.Watermark("0 seconds"),
)


@dataclass(frozen=True)
class Stop:
    """Where a chain stands still: in stage 1 or 2, at one of PLACES.

    cut    whether workers answer the windows of the first stage
    kafka  address of the broker whose topic is between the stages; empty: a folder is
    """

    stage: int
    place: str
    cut: bool
    kafka: str = ""

    def write(self, folder: Path) -> None:
        (folder / "stop.json").write_text(json.dumps(asdict(self)))


def first(spark: SparkSession, folder: Path, *, cut: bool = False, one_file: bool = True, kafka: str = "") -> sp.Job:
    """Return the job of the first stage: counts and best rows of one stream."""
    out = {name: Directory(str(folder / "out" / name), one_file=one_file) for name in FIRST}
    counts: Sink = sp.Kafka(kafka, folder.name, key="window_start, sensor") if kafka else out["counts"]
    job = sp.streams(
        read_batches(spark, folder / "in", SCHEMA),
        {name: plan.query for name, plan in FIRST.items()},
        time="ts",
        window={name: plan.windows for name, plan in FIRST.items()},
        progress=sp.Watermark("20 seconds"),
        checkpoint=folder / "checkpoint-1",
        output=out | {"counts": counts},
        workers=sp.WorkerOptions(wlq_workers=2),
    )
    return answered_by_workers(job) if cut else job


def second(spark: SparkSession, folder: Path, *, files: int | None = None, kafka: str = "") -> sp.Job:
    """Return the job of the second stage: its rows are the counts of the first one, at most `files` files a batch."""
    rows = _of_topic(spark, folder, kafka) if kafka else _of_folder(spark, folder, files)
    plan = SECOND_STAGE
    return sp.stream(
        rows, plan.query, time=plan.time, window=plan.windows, progress=plan.progress,
        checkpoint=folder / "checkpoint-2", output=folder / "totals",
    )  # fmt: skip


def _of_topic(spark: SparkSession, folder: Path, kafka: str) -> DataFrame:
    """Return the messages of the topic, a few a batch."""
    topic = {"kafka": kafka, "topic": folder.name}
    return sp.inputs(spark, [topic], COUNTS, rows_per_trigger=7, time_column="window_start")


def _of_folder(spark: SparkSession, folder: Path, files: int | None) -> DataFrame:
    (folder / "out" / "counts").mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.schema(COUNTS)
    if files is not None:
        reader = reader.option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder / "out" / "counts"))


BEFORE: Final = 3
"""The batch of the first stage before the one in which it stands still."""
COUNTED: Final = "counted.txt"
"""How many counts the first stage had written by then."""
SECOND_OUTPUT: Final = "before the second output"
"""The answers of one query of the first stage are there, those of the other are not."""
SECOND_FILE: Final = "before the second file"
TRANSACTION: Final = "before the transaction ends"
"""All messages of a batch are with the broker."""


def _write(original: Callable[..., None], sink: Directory, *args: Any) -> None:
    if sink.path.endswith("/best"):
        places.reached(sink.path, SECOND_OUTPUT)
    original(sink, *args)


def _move(original: Callable[..., None], store: DocumentStore, name: str, target: DocumentStore, to: str) -> None:
    if target.root.endswith("/out/counts") and to.endswith("-00001.parquet"):
        places.reached(target.root, SECOND_FILE)
    original(store, name, target, to)


def main(folder: Path) -> None:
    chains = sorted(path for path in folder.iterdir() if path.is_dir())
    standing = Semaphore(0)
    places.install(lambda _: standing.release())
    replace_method(Directory, "write", _write)
    replace_method(DocumentStore, "move", _move)

    def note(original: Callable[..., None], writer: TopicWriter, *args: Any) -> None:
        assert writer.producer.flush(30) == 0
        places.reached(str(folder / writer.topic), TRANSACTION)
        original(writer, *args)

    replace_method(TopicWriter, "_note", note)
    spark = session("local[2]", "chain")
    for chain in chains:
        Thread(target=_run, args=(spark, chain), daemon=True).start()
    for _ in chains:
        assert standing.acquire(timeout=PATIENT), "a chain does not come to its place"
    die()


def _run(spark: SparkSession, folder: Path) -> None:
    stop = Stop(**json.loads((folder / "stop.json").read_text()))
    job = first(spark, folder, cut=stop.cut, one_file=stop.place != SECOND_FILE, kafka=stop.kafka)

    counted = 0

    def stand(batch: sp.BatchMetrics) -> None:
        nonlocal counted
        counted += batch.queries["counts"].window_rows
        if batch.batch_id == BEFORE:
            (folder / COUNTED).write_text(f"{counted}")
            places.stand(folder, stop.place)

    if stop.stage == 1:
        ended(job, on_batch=stand)
    else:
        ended(job)
        places.stand(folder, stop.place)
        ended(second(spark, folder, files=1, kafka=stop.kafka))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
