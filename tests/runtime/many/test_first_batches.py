"""The first batches of a topic whose producer reorders blocks, in partitions of unequal size: the budget holds for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.parameters import slow_but
from tests.runtime.streams import finish
from tests.servers.kafka import Broker

import skypane as sp

ROWS, BLOCK = 12_000, 100
SHARES = (0.6, 0.3, 0.1)
"""How the rows are divided among the partitions."""


def partitions() -> list[list[float]]:
    """Return the times of each partition, in seconds: ten a second, late by twenty on average, one of a hundred by far more."""
    rng = np.random.default_rng(3)
    behind = rng.exponential(20, ROWS) * np.where(rng.random(ROWS) < 0.01, 10, 1)
    times, home = 1_772_431_200 + np.arange(ROWS) / 10 - behind, rng.choice(3, ROWS, p=SHARES)
    return [reordered(times[home == number].tolist(), rng) for number in range(3)]


def reordered(times: Sequence[float], rng: np.random.Generator) -> list[float]:
    """Return the times with some blocks of them after the block that they were before."""
    blocks = [times[at : at + BLOCK] for at in range(0, len(times), BLOCK)]
    for at in range(len(blocks) - 1):
        if rng.random() < 0.3:
            blocks[at : at + 2] = blocks[at + 1], blocks[at]
    return [time for block in blocks for time in block]


@pytest.fixture(scope="module")
def topic(kafka: Broker) -> str:
    kafka.create("first-batches", len(SHARES))
    for number, times in enumerate(partitions()):
        stamps = (datetime.fromtimestamp(time, UTC).isoformat() for time in times)
        kafka.send("first-batches", [json.dumps({"at": stamp}).encode() for stamp in stamps], number)
    return "first-batches"


def run(spark: SparkSession, kafka: Broker, topic: str, folder: Path, rows: int, policy: sp.ProgressPolicy) -> int:
    """Return the rows that are late if at most so many rows are read at a time."""
    inputs = [{"kafka": kafka.address, "topic": topic}]
    job = sp.stream(
        sp.inputs(spark, inputs, "at timestamp", rows_per_trigger=rows), sp.Aggregate(rows=sp.count()), time="at",
        window="1 minute", progress=policy, checkpoint=folder / type(policy).__name__, output=sp.Memory(),
    )  # fmt: skip
    last = finish(job)[-1]
    assert last.totals["read"] == ROWS
    return last.totals["late"]


@pytest.mark.parametrize("rows", slow_but([5_000, 100_000], [1_000, 5_000, 100_000]))
def test_a_topic_loses_no_more_than_the_budget_in_its_first_batches(
    spark: SparkSession, kafka: Broker, topic: str, tmp_path: Path, rows: int
):
    assert run(spark, kafka, topic, tmp_path, rows, sp.AqKSlack(0.01)) <= 0.012 * ROWS
    assert run(spark, kafka, topic, tmp_path, rows, sp.KSlack()) <= 0.001 * ROWS
