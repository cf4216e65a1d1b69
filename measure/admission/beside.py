"""Many inputs compared with Spark's own Kafka source: the same 200 partitions, in one session, in turn.

    python -m measure.admission.beside [--docs docs] [--rounds 3] [--share 1]

Two loads are stored in separate topics, spread over the partitions by Zipf's law. One is read in small batches, as at a
low rate, the other in large batches, as after a standstill.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.servers.kafka import IN_ORDER, Broker, broker, classpath, known_classpath

import skypane as sp
from measure.admission.load import zipf
from measure.tables import markdown_table, replace_between
from skypane.runtime.resources import cache_directory

CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",  # 4.2.0 is not in every mirror; it logs in, no more
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""Spark's own source, and what it needs that Spark does not have."""
CONSUMERS = {"spark.kafka.consumer.cache.capacity": "400"}
"""Spark's own source keeps a consumer per partition; of its default of 64, each batch would make 200 anew."""
SCHEMA = "n long, at double"
TOPICS, PARTITIONS = 50, 4


@dataclass(frozen=True)
class Waiting:
    """Rows that wait in topics `prefix`-00 ..., and how many a batch may have."""

    prefix: str
    rows: int
    batch: int


LOADS = (Waiting("small", 20_000, 2_000), Waiting("large", 800_000, 200_000))


@dataclass(frozen=True)
class Batch:
    """A batch: seconds it took in all, tasks, rows of each input."""

    seconds: float
    tasks: int
    rows: dict[str, int]


def fill(kafka: Broker, waiting: Waiting) -> dict[str, int]:
    """Send the rows; return how many each input has."""
    most = {"queue.buffering.max.messages": 2_000_000}
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 50, "log_level": 2, **most, **IN_ORDER})
    for at in range(TOPICS):
        kafka.create(f"{waiting.prefix}-{at:02}", PARTITIONS)
    counts = {}
    for at, share in enumerate(zipf(TOPICS * PARTITIONS, waiting.rows)):
        topic, partition = f"{waiting.prefix}-{at % TOPICS:02}", at // TOPICS
        counts[f"{topic}[{partition}]"] = round(share)
        for n in range(round(share)):
            producer.produce(topic, b'{"n": %d, "at": 0.0}' % n, partition=partition)
        producer.poll(0)
        assert producer.flush(60) == 0
    return counts


def ours(spark: SparkSession, kafka: Broker, waiting: Waiting) -> DataFrame:
    """Return what waits, read by skypane-many."""
    entry = {"kafka": kafka.address, "topic": f"{waiting.prefix}-*"}
    return sp.inputs(spark, [entry], SCHEMA, readers=2, rows_per_trigger=waiting.batch)


def theirs(spark: SparkSession, kafka: Broker, waiting: Waiting) -> DataFrame:
    """Return the same rows, read by Spark's own source."""
    options = {"kafka.bootstrap.servers": kafka.address, "subscribePattern": f"{waiting.prefix}-.*",
               "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(waiting.batch)}  # fmt: skip
    rows = spark.readStream.format("kafka").options(**options).load()
    name = sf.concat("topic", sf.lit("["), "partition", sf.lit("]"))
    return rows.select(sf.from_json(sf.col("value").cast("string"), SCHEMA).alias("row"), name.alias("input")).select(
        "row.*", "input"
    )


SOURCES = {"skypane-many": ours, "Spark's own": theirs}


def read(rows: DataFrame, folder: Path) -> list[Batch]:
    """Read all that waits; return the batches."""
    seen: list[tuple[int, dict[str, int]]] = []

    def look(batch: DataFrame, _: int) -> None:
        table: pa.Table = batch.withColumn("task", sf.spark_partition_id()).toArrow()
        counts = table.group_by("input").aggregate([([], "count_all")])
        seen.append((len(table["task"].unique()),
                     dict(zip(counts["input"].to_pylist(), counts["count_all"].to_pylist(), strict=True))))  # fmt: skip

    query = (
        rows.writeStream.foreachBatch(look).option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    took = [one.durationMs["triggerExecution"] / 1000 for one in query.recentProgress if one.numInputRows]
    return [Batch(seconds, *one) for seconds, one in zip(took, seen, strict=True)]


def line(source: str, runs: Sequence[Sequence[Batch]], counts: dict[str, int]) -> tuple[str, ...]:
    """Return what the runs of a source come to, medians over batches of all runs; the first batch of a run is left out."""
    later = [batch for run in runs for batch in run[1:]]
    seconds = float(np.median([batch.seconds for batch in later]))
    rate = float(np.median([sum(batch.rows.values()) / batch.seconds for batch in later]))
    tasks = int(np.median([batch.tasks for batch in later]))
    ends = {name: _ended(runs[0], name, count) for name, count in counts.items()}
    half, hot = sorted(ends.values())[len(ends) // 2], ends[max(counts, key=counts.__getitem__)]
    waited = [float(np.median([sum(batch.seconds for batch in run[1:upto]) for run in runs])) for upto in (half, hot)]
    return (
        source,
        str(tasks),
        f"{1000 * seconds:,.0f}",
        f"{rate:,.0f}",
        f"{len(runs[0][0].rows)}",
        f"{half} ({waited[0]:.1f} s)",
        f"{hot} ({waited[1]:.1f} s)",
    )


def _ended(run: Sequence[Batch], name: str, count: int) -> int:
    """Return in which batch, from 1, the last row of an input is."""
    read_ = np.cumsum([batch.rows.get(name, 0) for batch in run])
    assert read_[-1] == count, (name, read_[-1], count)
    return int(np.searchsorted(read_, count)) + 1


HEAD = ("", "tasks a batch", "ms a batch", "rows/s", "inputs in the first batch",
        "batch that brings the last of half of the inputs (seconds after the first batch)", "of the hottest")  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print; with --docs into the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the rows, to see whether it runs")
    given = parser.parse_args(arguments)
    jars = classpath(*CONNECTOR, alone=True).split(os.pathsep)
    settings = {"spark.jars": ",".join(jars), "spark.ui.enabled": "false", "spark.driver.memory": "4g", **CONSUMERS}
    spark = sp.session("local[2]", "beside", settings)
    lines = []
    with (
        tempfile.TemporaryDirectory() as folder,
        broker(known_classpath(cache_directory() / "kafka-classpath")) as kafka,
    ):
        for waiting in (replace(one, rows=round(one.rows * given.share)) for one in LOADS):
            counts = {name: count for name, count in fill(kafka, waiting).items() if count}
            runs: dict[str, list[list[Batch]]] = {name: [] for name in SOURCES}
            for at in range(given.rounds):
                for name, source in SOURCES.items():
                    began = time.monotonic()
                    runs[name].append(
                        read(source(spark, kafka, waiting), Path(folder) / f"{waiting.prefix}-{at}-{name[:3]}")
                    )
                    took = ", ".join(f"{batch.seconds:.2f}" for batch in runs[name][-1])
                    print(f"{waiting.prefix} {name} {time.monotonic() - began:.1f} s: {took}", flush=True)
            lines += [line(f"{name}, {waiting.batch:,} rows a batch", runs[name], counts) for name in SOURCES]
    text = markdown_table(HEAD, lines)
    print(text)
    if given.docs is not None:
        replace_between(given.docs / "admission.md", "beside", text)


if __name__ == "__main__":
    main()
