"""The parts of streams over Spark Connect that need no server: descriptions that pickle, and requests in a checkpoint."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.reporting.made import batch
from tests.runtime.streams import SECOND, CountBySensor

import skypane as sp
from skypane.control.parallelism import Workers
from skypane.control.splitting import POLICIES
from skypane.operators.query import Query
from skypane.plan import Plan
from skypane.runtime.background import in_background
from skypane.runtime.spark.batch_lifecycle import failure
from skypane.runtime.spark.batch_listeners import BatchListeners
from skypane.runtime.spark.connect.batch_requests import BatchRequests, PendingRequests
from skypane.runtime.spark.connect.committed_reader import CommittedReader, change_in_words
from skypane.runtime.spark.connect.connect_host import ConnectHost, check_sendable
from skypane.runtime.spark.connect.metrics_polling import MetricsPolling
from skypane.runtime.spark.connect.server_checks import check_sinks, complaint_of
from skypane.runtime.spark.connect.server_errors import cause_in, failed
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.patient_start import patiently_started
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.windows import Windows

SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "sensor": pa.string(), "price": pa.float64(), "rating": pa.float64()}
)
CHEAPEST = sp.Skyline("price MIN")


def described(
    folder: Path, query: Query = CHEAPEST, splitting: str = "AS_PID", output: Any = lambda rows, _: rows.show()
) -> EngineDescription:
    """Return the description of a job, by default with a sink of each kind that can be sent."""
    plan = Plan(query, Windows(50 * SECOND, 20 * SECOND), "ts", sp.Watermark("20 seconds"))
    sinks = Sinks.of(output, sp.Directory(str(folder / "late")))
    settings = JobSettings(plan, SCHEMA, str(folder / "checkpoint"), sinks, POLICIES[splitting])
    return EngineDescription(settings, Workers(2, 1))


QUERIES = (
    sp.Skyline("price MIN, rating MAX", ("sensor",)),
    sp.TopK(3, "rating - price"),
    sp.Aggregate(("sensor",), n=sp.count(), mean=sp.avg("price")),
    CountBySensor(),
)


@pytest.mark.parametrize("splitting", POLICIES)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_a_description_that_is_sent_is_the_same_description(tmp_path: Path, query: Query, splitting: str):
    ours = described(tmp_path, query, splitting)
    sent = cloudpickle.loads(cloudpickle.dumps(ours))
    assert sent.settings.plan.definition(SCHEMA) == ours.settings.plan.definition(SCHEMA)
    assert (sent.workers, sent.checkpoint) == (ours.workers, ours.checkpoint)
    assert sent.settings.splitting == ours.settings.splitting
    assert sent.settings.sinks.late == ours.settings.sinks.late


def test_an_engine_that_is_made_where_its_description_was_sent_takes_over_the_checkpoint(tmp_path: Path):
    ours = described(tmp_path)
    first, second = ours.engine(), cloudpickle.loads(cloudpickle.dumps(ours)).engine()
    assert second.ledger.ownership.driver > first.ledger.ownership.driver
    with pytest.raises(sp.CheckpointError, match="another driver has started"):
        first.ledger.ownership.check()
    assert (second.history(10), second.workers) == ([], Workers(2, 1))


def test_requests_are_there_until_they_are_met_and_the_last_one_for_workers_counts(tmp_path: Path):
    requests = BatchRequests(str(tmp_path))
    assert requests.pending() == PendingRequests()
    requests.scale(Workers(2, 1))
    requests.scale(Workers(3, 4))
    pending = requests.pending()
    assert (pending.stop, len(pending.names), pending.workers) == (False, 2, Workers(3, 4))
    requests.scale(Workers(5, 5))
    requests.remove(pending.names)
    assert requests.pending().workers == Workers(5, 5), "one that came since the batch began is not lost"
    requests.stop()
    assert requests.pending().stop
    requests.clear()
    assert requests.pending() == PendingRequests()


def test_a_reader_knows_a_checkpoint_that_is_not_there_yet(tmp_path: Path):
    reader = CommittedReader(described(tmp_path))
    assert reader.start() == {"last": -1, "unfinished": False, "missed": None, "columns": None}
    assert reader.control()["workers"] == {"plq": 2, "wlq": 1}
    assert (reader.history(10), reader.metrics_after(-1)) == ([], [])
    with pytest.raises(sp.SkypaneError, match="keeps no front"):
        reader.front()
    assert not (tmp_path / "checkpoint").exists(), "it takes nothing over, and writes nothing"


def test_a_reader_reports_that_a_checkpoint_belongs_to_another_query(tmp_path: Path):
    described(tmp_path).engine()
    other = CommittedReader(described(tmp_path, sp.Skyline("price MAX")))
    with pytest.raises(sp.CheckpointError, match="belongs to another query"):
        other.start()
    change = change_in_words(other.changes())
    assert change
    assert change.refused
    assert not change_in_words(CommittedReader(described(tmp_path)).changes())


def test_numbers_of_workers_add_up_over_requests_and_invalid_ones_are_refused(tmp_path: Path):
    reader = CommittedReader(described(tmp_path))
    reader.scale(3, None)
    reader.scale(None, 2)
    assert BatchRequests(reader.description.checkpoint).pending().workers == Workers(3, 2)
    with pytest.raises(sp.ConfigError, match="plq_workers must be a whole number of at least 1, got 0"):
        reader.scale(0, None)


def test_the_cause_of_a_failed_batch_is_found_among_pages_of_spark():
    error = failure(12, ValueError("the table is locked\nand a second line"))
    trace = RuntimeError(
        f"Traceback (most recent call last):\n  raise failure(batch)\nRuntimeError: {error}\n SQLSTATE: 38000"
    )
    assert cause_in(trace) == "ValueError: the table is locked"
    assert str(failed(trace)) == "ValueError: the table is locked"
    assert cause_in(RuntimeError("[PYTHON_EXCEPTION] something else")) is None


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        ({"missing": [], "version": "1.2.3"}, None),
        ({"missing": [], "version": None}, None),  # on the path, not installed
        ({"missing": [], "version": "1.2.3", "sent": "/files/skypane.zip"}, "has skypane only as /files/skypane.zip"),
        ({"missing": ["skypane", "numba"], "version": None}, "has no skypane and no numba; install skypane"),
        ({"missing": [], "version": "1.2.2"}, "has skypane 1.2.2, and this client skypane 1.2.3; install skypane"),
    ],
)
def test_a_server_that_cannot_run_the_engine_is_named_with_the_remedy(found: dict[str, Any], complaint: str | None):
    said = complaint_of({"sent": None} | found, "1.2.3")
    assert said is None if complaint is None else complaint in str(said)


def test_a_sink_in_memory_is_refused_for_each_role():
    with pytest.raises(sp.ConfigError, match=r"late is Memory\(\)"):
        check_sinks(Sinks.of("folder", sp.Memory()))
    check_sinks(Sinks.of("folder", "other"))


def test_a_sink_whose_rows_wait_is_refused_for_each_role(tmp_path: Path):
    rolling = sp.Directory(str(tmp_path), roll="5 minutes")
    with pytest.raises(sp.ConfigError, match=r"late has roll=.* leave roll= out, or run the job in a classic session"):
        check_sinks(Sinks.of("folder", rolling))


def test_executors_that_a_client_cannot_request_are_refused_when_the_job_is_made(spark: SparkSession, tmp_path: Path):
    settings = described(tmp_path).settings
    host = ConnectHost(spark)
    host.check(settings)
    with pytest.raises(sp.ConfigError, match=r"set spark\.dynamicAllocation\.enabled on the server"):
        host.check(replace(settings, follows=True))


def test_what_cannot_be_pickled_is_refused_before_anything_runs(tmp_path: Path):
    with (tmp_path / "open").open("w") as file, pytest.raises(sp.ConfigError, match="cannot be pickled"):
        check_sendable(described(tmp_path, output=lambda *_: file.flush()))


def test_a_listener_that_polls_receives_each_batch_once_also_if_it_fails_on_one():
    kept = [batch(batch_id=number).to_json() for number in range(5)]
    seen, committed = list[int](), [0]

    def fails_on_one(metrics: sp.BatchMetrics) -> None:
        seen.append(metrics.batch_id)
        if metrics.batch_id == 2:
            raise ValueError("not this one")

    polling = MetricsPolling(BatchListeners(fails_on_one), lambda after: kept[after + 1 : committed[0]], 0)
    for committed[0] in (1, 3, 3, 5):
        polling.look()
    polling.end()
    assert seen == [1, 2, 3, 4]


def test_a_listener_that_polls_may_stop_the_query_and_receives_the_batches_until_then():
    """stop() passes on what is left, while the listener that calls it is on an earlier batch."""
    kept = [batch(batch_id=number).to_json() for number in range(4)]
    seen: list[int] = []
    committed = 2

    def stops(metrics: sp.BatchMetrics) -> None:
        nonlocal committed
        seen.append(metrics.batch_id)
        if metrics.batch_id == 1:
            committed = 4  # the running batch, after which the query stops, is committed meanwhile
            polling.end()

    polling = MetricsPolling(BatchListeners(stops), lambda after: kept[after + 1 : committed], -1)
    in_background(polling.look).result(60)
    assert seen == [0, 1, 2, 3]


def test_a_start_is_repeated_if_python_beside_the_server_was_late_and_for_no_other_reason():
    errors = [PySparkException("Python worker failed to connect back.")] * 2 + [PySparkException("no such table")]
    tries = iter(errors)

    def start() -> Any:
        raise next(tries)

    with pytest.raises(PySparkException, match="no such table"):
        patiently_started(start)
    assert list(tries) == []


_ORPHAN = """
import subprocess, sys
child = "from skypane.runtime.spark.connect.server_watch import end_with_server as e; e(); print('watched', flush=True); import threading; threading.Event().wait()"
process = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=sys.stdout)
sys.stdin.readline()
"""


def test_a_process_beside_the_server_ends_with_it():
    with subprocess.Popen([sys.executable, "-c", _ORPHAN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"watched\n"
        server.kill()
        assert server.stdout.read() == b"", "the pipe is closed when the last process that has it has ended"
