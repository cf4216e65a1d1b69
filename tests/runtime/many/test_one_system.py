"""Admission as one system on Spark: a topic of Kafka whose rate is stated beforehand, up to answers by keys.

Kafka -> inputs (statements, Holt, DRF-M for the capacity; ARI within a batch) -> rate-aware panes (AS) -> windows divided
by a hash of the keys -> workers by the model. Each law's decisions are in the metrics, and answers are the definition's.

The stream feeds itself: a committed batch puts the next rows into the topic, so nothing depends on how fast the machine is.
The stated change is half an hour ahead, within a lead time of an hour: workers that are there now are there before it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import answers, late_rows, parquet_rows
from tests.servers.kafka import Broker

import skypane as sp
from skypane.control.costs import Costs
from skypane.plan import Plan
from skypane.progress.watermark import Watermark
from skypane.runtime import local
from skypane.windows import Windows

MOST = 4
PLQ = 3
"""Readers, and workers for panes, at most."""
ENOUGH = 14
"""Batches after which the stream may end."""
SCHEMA = "id long, ts timestamp, sensor string, price double, rating double, weight long"
QUERY = sp.Aggregate("weight", n=sp.count(), total=sp.sum("price"), best=sp.max("rating"))
PLAN = Plan(QUERY, Windows.of("50 seconds", "20 seconds"), "ts", Watermark("2 minutes"))
FREE = Costs(exchange=0.0, exchange_per_row=0.0, job=0.0, window=1.0, divided_per_row=0.0, many_keys=1)
"""With these, rows are exchanged as soon as that may be, and windows divided by keys whenever there are any."""


def chunks() -> list[pa.Table]:
    """Return more rows than will be fed, in chunks whose event times hardly overlap: a watermark drops none of them."""
    columns = [name.split()[0] for name in SCHEMA.split(", ")]
    return [table.select(columns) for table in late_rows(11, batches=200, rows=60)]


def messages(table: pa.Table) -> list[bytes | None]:
    return [json.dumps(row | {"ts": row["ts"].isoformat()}).encode() for row in table.to_pylist()]


@dataclass
class Fed:
    """A topic of three partitions, of which one gets most of the rows, that is fed until what a test waits for is there."""

    broker: Broker
    topic: str
    waits_for: int
    seen: list[sp.BatchMetrics] = field(default_factory=list)
    sent: list[pa.Table] = field(default_factory=list)
    done: Event = field(default_factory=Event)
    rest: Iterator[pa.Table] = field(default_factory=lambda: iter(chunks()))

    def more(self) -> None:
        """Send the next chunk, two thirds of it to the first partition."""
        table = next(self.rest)
        self.sent.append(table)
        rows = messages(table)
        for partition, part in enumerate((rows[:40], rows[40:50], rows[50:])):
            self.broker.send(self.topic, part, partition)

    def __call__(self, batch: sp.BatchMetrics) -> None:
        self.seen.append(batch)
        there = all(one.workers["plq"] == self.waits_for for one in self.seen[-3:])
        if self.waits_for > 1:
            there = there and all(one.exchange for one in self.seen[-3:])
        if (len(self.seen) >= ENOUGH and there) or len(self.sent) == 200:
            self.done.set()
        else:
            self.more()


def job(spark: SparkSession, folder: Path, fed: Fed, meta: dict[str, Any]) -> sp.Job:
    """Return the job; its readers and workers are sized by one bound on latency."""
    entry = {"kafka": fed.broker.address, "topic": fed.topic, "meta": meta}
    rows = sp.inputs(spark, [entry], SCHEMA, readers=sp.Readers(max_readers=MOST, latency="5 seconds"), lead="1 hour")
    elastic = sp.Model(latency="5 seconds", max_workers=100, max_plq=PLQ, min_wlq=2, max_wlq=2, every=1)
    made = sp.stream(
        rows, QUERY, time="ts", window="50 seconds", slide="20 seconds", progress=PLAN.progress,
        checkpoint=folder / "checkpoint", output=folder / "out", workers=sp.WorkerOptions(splitting="AS", elastic=elastic),
    )  # fmt: skip
    return replace(made, settings=replace(made.settings, costs=FREE))


def run(
    spark: SparkSession, folder: Path, broker: Broker, meta: dict[str, Any], waits_for: int
) -> list[sp.BatchMetrics]:
    """Feed the stream until it has these workers, drain it, and hold its answers against the definition."""
    topic = f"system-{uuid4().hex[:8]}"
    broker.create(topic, 3)
    fed = Fed(broker, topic, waits_for)
    fed.more()
    handle = job(spark, folder, fed, meta).start(on_batch=fed)
    assert fed.done.wait(900), handle.status
    handle.drain()
    wanted = answers(PLAN, [*fed.sent, local.Drain()])
    assert rows_of(parquet_rows(folder / "out")) == rows_of(wanted)
    assert wanted.num_rows > 100
    return fed.seen


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Return the rows as a multiset: those of one window are in several files if its keys were divided."""
    return Counter(tuple(row.values()) for row in table.select(sorted(table.schema.names)).to_pylist())


def reasons(seen: list[sp.BatchMetrics], what: str) -> list[str]:
    return [decision.because for batch in seen for decision in batch.decisions if decision.what == what]


@pytest.mark.slow
def test_readers_and_workers_are_there_before_a_stated_change_and_each_law_gives_its_reason(
    spark: SparkSession, tmp_path: Path, kafka: Broker
):
    opens = datetime.fromtimestamp(time.time() + 1_800, UTC).isoformat(timespec="seconds")
    stated = run(spark, tmp_path / "stated", kafka, {"changes": f"x100000 at {opens}"}, PLQ)
    assert stated[-1].workers == {"plq": PLQ, "wlq": 2}
    assert stated[-1].started_at < datetime.fromisoformat(opens).timestamp()
    assert {decision.what for batch in stated for decision in batch.decisions} >= {
        "rate", "readers", "assignment", "costs", "exchange", "splitting", "placement", "progress", "workers"
    }  # fmt: skip
    assert any(
        f"x100000 at {opens}, in " in reason and reason.startswith("DRF-M: ") for reason in reasons(stated, "rate")
    )
    assert any("DRF-M: " in reason for reason in reasons(stated, "readers"))
    assert all(reason.startswith("ARI: ") for reason in reasons(stated, "assignment"))
    assert any("DRF-M: " in reason and f"made PLQ {PLQ}, WLQ 2" in reason for reason in reasons(stated, "workers"))
    assert any(reason.startswith("theta ") for reason in reasons(stated, "splitting"))
    assert any("each by keys in 2 parts" in reason for reason in reasons(stated, "placement"))
    assert any(one.expected is not None and one.expected > 1_000 * one.forecast for batch in stated for one in batch.inputs
               if one.forecast)  # fmt: skip


@pytest.mark.night
def test_without_a_statement_the_same_rows_take_one_worker(spark: SparkSession, tmp_path: Path, kafka: Broker):
    silent = run(spark, tmp_path, kafka, {}, 1)
    assert silent[-1].workers == {"plq": 1, "wlq": 2}
    assert not reasons(silent, "rate")
