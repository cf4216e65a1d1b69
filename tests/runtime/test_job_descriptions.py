"""Spark's jobs of a stream: which batch and step each belongs to, in Spark's UI and in what it serves."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.runtime.decisions.test_monitored import job_of, until
from tests.runtime.scenarios import lines_of

from skypane.runtime.spark.engine.job_descriptions import DESCRIPTION, described_jobs

LIMIT = 300


def described(spark: SparkSession) -> list[tuple[str | None, str]]:
    """Return the group and the description of each job that the UI would show."""

    def text(option: Any) -> str:
        return str(option.get()) if option.isDefined() else ""

    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    each = [jobs.apply(number) for number in range(jobs.size())]
    return [(text(job.jobGroup()), text(job.description())) for job in each]


class Counting:
    """A sink that runs a job, and sees what the thread that it runs in describes jobs by."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []

    def __call__(self, rows: DataFrame, _: int) -> None:
        rows.count()
        self.seen.append(rows.sparkSession.sparkContext.getLocalProperty(DESCRIPTION))


def test_the_jobs_of_a_batch_are_described_by_its_number_and_step(spark: SparkSession, tmp_path: Path):
    sink = Counting()
    handle = job_of(spark, tmp_path, output=sink).start(name="described", trigger="available now")
    assert handle.await_termination(LIMIT)
    run = str(handle.query.runId)

    def steps() -> set[tuple[str, str]]:
        """Return the lines of Spark and of skypane that say the batch."""
        lines = [text.splitlines() for group, text in described(spark) if group == run]
        return {(one[-2].removeprefix("batch = "), one[-1]) for one in lines if len(one) > 1}

    wanted = {(str(n), f"skypane: batch {n}, {step}") for n in range(4) for step in ("plq", "sink")}
    until(lambda: wanted <= steps())
    assert all(text is not None and text.startswith("described\n") for text in sink.seen)


@pytest.mark.parametrize("before", [None, "mine"])
def test_afterwards_jobs_are_described_as_before(spark: SparkSession, before: str | None):
    """Also if a step fails: jobs of the same thread that belong to no batch, such as a listener's, are not the batch's."""
    context = spark.sparkContext
    seen = []

    def failing() -> None:
        with described_jobs(spark, 7) as describe:
            for step in ("plq", "sink"):
                describe(step)
                seen.append(context.getLocalProperty(DESCRIPTION))
            raise OSError("the disk is full")

    context.setLocalProperty(DESCRIPTION, before)  # type: ignore[arg-type]  # None removes it
    try:
        with pytest.raises(OSError, match="full"):
            failing()
        assert context.getLocalProperty(DESCRIPTION) == before
    finally:
        context.setLocalProperty(DESCRIPTION, None)  # type: ignore[arg-type]
    first = "" if before is None else "mine\n"
    assert seen == [f"{first}skypane: batch 7, plq", f"{first}skypane: batch 7, sink"]


def test_a_drain_leaves_the_description_of_its_thread_as_it_was(spark: SparkSession, tmp_path: Path):
    sink = Counting()
    handle = job_of(spark, tmp_path, output=sink).start()
    until(lambda: len(handle.recent_metrics()) == 4)
    context = spark.sparkContext
    context.setJobDescription("mine")
    try:
        assert handle.drain() is not None
        assert context.getLocalProperty(DESCRIPTION) == "mine"
    finally:
        context.setLocalProperty(DESCRIPTION, None)  # type: ignore[arg-type]
    assert sink.seen[-1] == "mine\nskypane: batch 4, sink"


SESSION = """
from pyspark.sql import SparkSession
from tests.java import inside_java
from skypane.runtime.spark.engine.job_descriptions import DESCRIPTION, described_jobs

spark = SparkSession.builder.master("local[1]").config(map=inside_java()).config("spark.ui.enabled", "false").getOrCreate()
"""

STOPPED = """
try:
    with described_jobs(spark, 7) as describe:
        spark.stop()
        describe("sink")
        raise OSError("the disk is full")
except OSError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_session_that_is_stopped_meanwhile_hides_no_error_of_the_batch():
    assert lines_of("-c", SESSION + STOPPED) == ["the disk is full"]


UNPINNED = """
with described_jobs(spark, 7) as describe:
    describe("plq")
    print(spark.sparkContext.getLocalProperty(DESCRIPTION))
spark.stop()
"""


@pytest.mark.slow
def test_jobs_are_not_described_where_threads_share_those_of_java():
    """A description would be that of a thread in Java, which another thread of Python may use next."""
    assert lines_of("-c", SESSION + UNPINNED, env=os.environ | {"PYSPARK_PIN_THREAD": "false"}) == ["None"]


@pytest.mark.slow
def test_the_ui_of_a_session_that_is_there_stays_on_and_shows_the_steps(tmp_path: Path):
    shown = json.loads(lines_of("-m", "tests.runtime.with_ui", tmp_path)[-1])
    assert {"skypane: batch 0, plq", "skypane: batch 3, sink"} <= {text.rpartition("\n")[2] for text in shown}
