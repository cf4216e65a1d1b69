"""The streams that are put to the test: the query of each, its input, and where its answers go."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from tests.chaos.naive import CONTINUOUS, EVERY, LENGTH, SCHEMA, SECOND, SLIDE, WITHIN
from tests.nature.rows import DELAY, Habits
from tests.runtime.driver import die
from tests.runtime.streams import CountBySensor, read_batches

import skypane as sp
from skypane.control.costs import Costs
from skypane.runtime.spark.engine import front_program
from skypane.types import Length

if TYPE_CHECKING:
    from tests.nature.driver import Task

LOCAL: Final = "local[2,1000]"
CLUSTER: Final = "local-cluster[2,1,512]"
COLUMNS: Final = "id long, ts timestamp, sensor string, price double, rating double, weight long"
PREFERENCE: Final = "price MIN, rating MAX"
NARROW: Final = 2 * SECOND
"""The slide of the windows of which rows stay in twenty-five."""
MOST_AMENDED: Final = 0.3
UNLATE: Final = "30 minutes"
"""How long many inputs wait for each other: longer than one of them can lag behind what is fed."""


@dataclass(frozen=True)
class Scenario:
    """A stream: on which master its drivers run, what its rows are like, and what may be done to it beside kills.

    broker    it needs a broker of Kafka, which may be cut off
    receiver  it reads what a receiver writes, which may be killed
    restored  all that it writes is in its folder: a copy of that is a copy of the stream
    cut       what rows come to depends on where batches begin, which the ledger says
    """

    job: Callable[[SparkSession, Task], sp.Job]
    master: str = LOCAL
    habits: Habits = field(default_factory=Habits)
    broker: bool = False
    receiver: bool = False
    restored: bool = True
    cut: bool = False


def _windowed(rows: DataFrame, query: Any, task: Task, **more: Any) -> sp.Job:
    own: dict[str, Any] = {
        "time": "ts", "window": Length(LENGTH), "slide": Length(SLIDE), "progress": sp.Watermark(DELAY),
        "checkpoint": task.folder / "checkpoint", "output": task.folder / "out", "late": task.folder / "late",
    }  # fmt: skip
    return sp.stream(rows, query, **own | more)


def _files(spark: SparkSession, task: Task) -> DataFrame:
    """Return the steps that were written, a few a batch; the last start takes all that are left."""
    some = 1_000 if task.last else random.Random(task.seed).choice([1, 1, 2, 3])
    return read_batches(spark, task.folder / "in", SCHEMA, files=some)


SKYLINE: Final = sp.Skyline(PREFERENCE, by="sensor")
SUMS: Final = sp.Aggregate(
    "sensor", required="price", n=sp.count(), total=sp.sum("weight"), low=sp.min("price"),
    different=sp.approx_count_distinct("id"), median=sp.approx_quantile("price", 0.5),
)  # fmt: skip
SHARE: Final = sp.AqKSlack(max_amended=MOST_AMENDED, reserve=1, max_slack="10 seconds")
"""Its slack is less than rows are late by, so that windows are amended whatever it learns."""
IDS: Final = sp.Aggregate("sensor", time="ts", n=sp.count(), total=sp.sum("weight"), ids=sp.collect_list("id"))


def _to_folder(spark: SparkSession, task: Task) -> sp.Job:
    return _windowed(_files(spark, task), SKYLINE, task)


def _aggregates(spark: SparkSession, task: Task) -> sp.Job:
    return _windowed(_files(spark, task), SUMS, task, late=None)


def _continuous(spark: SparkSession, task: Task) -> sp.Job:
    """What is stored is written again every few batches; places.py has rows compared in the driver, in threads and in tasks."""
    for name in ("_SPARE", "_REFERENCES"):
        setattr(front_program, name, 8)
    return sp.continuous_skyline(
        _files(spark, task), PREFERENCE, time="ts", window=Length(LENGTH), by="sensor", every=Length(CONTINUOUS),
        progress=sp.Watermark(DELAY), checkpoint=task.folder / "checkpoint", output=task.folder / "out",
        late=task.folder / "late", front=task.folder / "front",
    )  # fmt: skip


def _amended(spark: SparkSession, task: Task, **more: Any) -> sp.Job:
    """Most late rows amend answers, a few come too late for that."""
    late = sp.Amend(Length(WITHIN), then=task.folder / "late")
    return _windowed(_files(spark, task), SKYLINE, task, **{"progress": sp.Watermark("1 second"), "late": late} | more)


def _by_share(spark: SparkSession, task: Task) -> sp.Job:
    """So many windows may be amended that the punctuation depends on how many have been: its account is in the ledger."""
    return _amended(spark, task, progress=SHARE)


def _early(spark: SparkSession, task: Task) -> sp.Job:
    late = sp.Amend(Length(WITHIN), then=task.folder / "late", changes=True)
    return _amended(spark, task, late=late, early=Length(EVERY))


def _stays(spark: SparkSession, task: Task) -> sp.Job:
    """A batch that comes again may be answered by tasks after the driver has tried, and is cut into other stays then."""
    workers = sp.WorkerOptions(wlq_workers=3)
    job = _windowed(_files(spark, task), SKYLINE, task, slide=Length(NARROW), answers="stays", workers=workers)
    costs = (job.settings.costs, Costs(job=0.0, threads=1e3, window=1.0))
    return replace(job, settings=replace(job.settings, costs=costs[task.seed % 2]))


def _held(spark: SparkSession, task: Task) -> sp.Job:
    """Rows of a wrong clock are held, and quarantined soon; those that come first after a pause are held, and then followed."""
    return _windowed(_files(spark, task), SKYLINE, task, progress=sp.Watermark(DELAY, patience=60))


@dataclass(frozen=True)
class Deadly(CountBySensor):
    """Counts, and kills the worker process that it is lifted in: the first one only, which leaves a file for the others."""

    marker: str = ""

    def lift(self, rows: pa.Table) -> pa.Table:
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return super().lift(rows)
        return die()


def _deadly(spark: SparkSession, task: Task) -> sp.Job:
    return _windowed(_files(spark, task), Deadly(marker=f"{task.folder}/killed"), task)


def _elastic(spark: SparkSession, task: Task) -> sp.Job:
    elastic = sp.Threshold(max_workers=4, target=0.2, tolerance=0.05, every=2)
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=2, elastic=elastic)
    return _windowed(_files(spark, task), SKYLINE, task, workers=workers)


def _inputs(spark: SparkSession, task: Task) -> sp.Job:
    some = None if task.last else random.Random(task.seed).choice([80, 160])
    rows = sp.inputs(spark, task.folder / "inputs.json", COLUMNS, rows_per_trigger=some)
    return _windowed(rows, IDS, task, slide=None, window=Length(SLIDE), progress=sp.Watermark(UNLATE))


def _to_function(spark: SparkSession, task: Task) -> sp.Job:
    calls = task.folder / "calls"
    calls.mkdir(exist_ok=True)

    def take(rows: DataFrame, batch_id: int) -> None:
        draft = calls / f".{uuid.uuid4().hex}"
        pq.write_table(rows.toArrow(), draft)
        draft.rename(calls / f"{batch_id:08}-{draft.name[1:]}.parquet")

    return _windowed(_files(spark, task), SKYLINE, task, output=take)


def _to_kafka(spark: SparkSession, task: Task) -> sp.Job:
    """A user's own sink: each row a message, whose key says of which batch it is, and which of its rows."""
    from confluent_kafka import Producer  # noqa: PLC0415 - few need the client

    def take(rows: DataFrame, batch_id: int) -> None:
        found: pa.Table = rows.toArrow()
        times = pc.cast(found["window_start"], pa.int64()).to_pylist()
        producer = Producer({"bootstrap.servers": task.broker, "linger.ms": 2, "log_level": 0})
        for at, (start, id_) in enumerate(zip(times, found["id"].to_pylist(), strict=True)):
            message = json.dumps({"start": start, "id": id_}).encode()
            producer.produce(topic_of(task.folder, "out"), message, key=f"{batch_id}/{at}".encode())
        if producer.flush(20):
            raise OSError(f"batch {batch_id}: the broker has not taken all")

    return _windowed(_files(spark, task), SKYLINE, task, output=take)


def topic_of(folder: Path, name: str) -> str:
    """Return the topic of a stream."""
    return f"{folder.name}-{name}"


def _after_state(spark: SparkSession, task: Task) -> sp.Job:
    rows = _files(spark, task).withWatermark("ts", "1 day").dropDuplicatesWithinWatermark(["id"])
    return _windowed(rows, SKYLINE, task)


SCENARIOS: Final = {
    "folder": Scenario(_to_folder),
    "aggregates": Scenario(_aggregates),
    "continuous": Scenario(_continuous),
    "amended": Scenario(_amended, cut=True),
    "share": Scenario(_by_share, cut=True),
    "early": Scenario(_early, cut=True),
    "stays": Scenario(_stays),
    "held": Scenario(_held, habits=Habits(pause=9)),
    "deadly": Scenario(_deadly, habits=Habits(strange=("timeless", "old", "ahead"))),
    "elastic": Scenario(_elastic, CLUSTER),
    "inputs": Scenario(_inputs, habits=Habits(strange=()), broker=True, receiver=True, restored=False),
    "function": Scenario(_to_function),
    "kafka": Scenario(_to_kafka, broker=True, restored=False),
    # Spark's operator accepts every clock, and lets nothing pass that is older than its own watermark.
    "state": Scenario(_after_state, habits=Habits(strange=("blank", "no number"), again=10)),
}
