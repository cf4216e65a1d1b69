"""The report of a failure: one line with the cause, in the error and in the log; the whole trace on request."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import SparkSession
from tests.nature.disk import Disk
from tests.runtime.streams import CountBySensor, late_rows, stream_job, write_batches

import skypane as sp
from skypane.runtime.spark.error_causes import cause
from skypane.types import CheckpointError

WORKERS = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "partials.py", line 41, in write
    raise KeyError(name)
KeyError: 'price'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "partials.py", line 43, in write
pyarrow.lib.ArrowIOError: no room
"""


FAILED = """[STREAM_FAILED] Query [id = 4104, runId = 3b04] terminated with exception: batch 2 doesn't exist SQLSTATE: XXKST
=== Streaming Query ===
"""


WITHOUT_KAFKA = """[KAFKA_DATA_SOURCE_NOT_ENABLED] Failed to find data source: kafka. Please deploy the application as per the \
deployment section of Structured Streaming + Kafka Integration Guide. SQLSTATE: 42K02"""
INSTEAD_OF_KAFKA = (
    "Spark has no connector of Kafka here: read topics with the source skypane-many, sp.inputs in a program, which needs "
    "none, or start Spark with the package spark-sql-kafka-0-10"
)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PythonException(WORKERS), "pyarrow.lib.ArrowIOError: no room"),
        (PythonException("[A_CLASS] no room\n=== Streaming Query ==="), "[A_CLASS] no room"),
        (StreamingQueryException(FAILED), "batch 2 doesn't exist"),
        (PythonException(""), "PythonException"),
        (AnalysisException(WITHOUT_KAFKA), INSTEAD_OF_KAFKA),
        (CheckpointError("a.json is damaged: restore it"), "a.json is damaged: restore it"),
        (OSError("no room\nat all"), "OSError: no room"),
        (OSError("no answer of https://a/b?sig=s3cr3t"), "OSError: no answer of https://a/b?sig=(not shown)"),
        (CheckpointError("no answer of s3://me:s3cr3t@b"), "no answer of s3://(not shown)@b"),
        (KeyError("price"), "KeyError: 'price'"),
        (AssertionError(), "AssertionError"),
        (ValueError("x" * 5_000), f"ValueError: {'x' * 1_988}... (5,012 characters)"),
    ],
)
def test_the_cause_is_one_line(error: Exception, line: str):
    assert cause(error) == line


@dataclass(frozen=True)
class Failing(CountBySensor):
    """A query of a user's own, with a fault in it."""

    def lift(self, rows: pa.Table) -> pa.Table:  # noqa: ARG002
        raise ValueError("there is no lift")


def test_a_failure_in_a_worker_is_reported_in_one_line(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    batches = late_rows(4, batches=1)
    write_batches(tmp_path / "in", batches)
    job = stream_job(spark, tmp_path, Failing(), batches[0].schema, window="1 day", output=sp.Memory())
    with caplog.at_level(logging.DEBUG, "skypane"):
        handle = job.start(trigger="available now")
        with pytest.raises(sp.SkypaneError) as error:
            handle.await_termination(120)
    assert str(error.value) == "the query has failed: ValueError: there is no lift"
    assert "Traceback" in str(error.value.__cause__)
    assert handle.status["error"] == "ValueError: there is no lift"
    ours = [record for record in caplog.records if record.name.startswith("skypane")]
    (logged,) = (record for record in ours if record.levelno >= logging.ERROR)
    assert logged.getMessage() == "batch 0 failed: ValueError: there is no lift"
    assert logged.exc_info is None
    (whole,) = (record for record in ours if record.levelno == logging.DEBUG and record.exc_info)
    assert whole.exc_info is not None
    assert whole.exc_info[1] is error.value.__cause__


def test_a_start_on_a_full_disk_names_the_file_and_the_remedy(spark: SparkSession, tmp_path: Path):
    disk = Disk(tmp_path / "disk")
    try:
        if not disk.can_be_full:
            pytest.skip("nothing may be mounted here")
        batches = late_rows(4, batches=1)
        write_batches(tmp_path / "in", batches)
        state = disk.root / "state"
        job = stream_job(
            spark, tmp_path, CountBySensor(), batches[0].schema, window="1 day", output=sp.Memory(), checkpoint=state
        )
        disk.fill(0)
        with pytest.raises(
            sp.SkypaneError, match=f"{state}.*No space left on device; free space there, and start again"
        ):
            job.start(trigger="available now")
        disk.empty()
        handle = job.start(trigger="available now")
        assert handle.await_termination(120)
        handle.drain()
    finally:
        disk.close()
