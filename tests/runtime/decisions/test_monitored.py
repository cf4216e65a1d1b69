"""Running queries as Prometheus and OpenTelemetry see them: real streams, restarts, several in one process, and a scrape during a batch."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.opentelemetry import collected
from tests.prometheus.scraped import text_at, total, value, values
from tests.runtime import driver
from tests.runtime.driver import Task
from tests.runtime.streams import finish, late_rows, write_batches
from tests.servers.ports import free_ports

import skypane as sp
from skypane.monitoring.measures import OF_QUERIES, OF_STREAMS, RUNNING
from skypane.prometheus import shipped_files

LIMIT = 300
HERE = "127.0.0.1:0"


def job_of(spark: SparkSession, folder: Path, **options: Any) -> sp.Job:
    """Return a job over a stream many of whose rows are late, in batches that are there."""
    write_batches(folder / "in", late_rows(7, batches=4))
    own = {"source": "sensor", "output": sp.Memory()} | options
    return driver.job_of(spark, Task(str(folder), late=False), sp.Skyline("price MIN, rating MAX"), **own)


def until(reached: Callable[[], bool]) -> None:
    """Look again and again, until a state is reached."""
    looked, limit = threading.Event(), time.monotonic() + LIMIT
    while not reached():
        assert time.monotonic() < limit
        looked.wait(0.05)


@dataclass(frozen=True)
class Observed:
    """What was seen of a query that was drained: its batches, and what Prometheus and OpenTelemetry got while it ran and at the end."""

    seen: list[sp.BatchMetrics]
    running: tuple[float | None, float]
    text: str
    exported: dict[tuple[str, collected.Labels], float]


@pytest.fixture(scope="module")
def observed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    provider, reader = collected.provider_and_reader()
    with sp.register_metrics(meter_provider=provider) as registered:
        handle = job_of(spark, tmp_path_factory.mktemp("observed")).start()
        registered.watch(handle)
        with sp.serve_metrics(handle, address=HERE) as server:
            until(lambda: len(handle.recent_metrics()) == 4)
            running = (
                value(text_at(server.url), "skypane_running", stream="checkpoint"),
                collected.value(reader, "skypane.running", stream="checkpoint"),
            )
            handle.drain()
            text = text_at(server.url)
        return Observed(handle.recent_metrics(), running, text, collected.values(reader))


def test_what_is_served_is_what_the_batches_report(observed: Observed):
    seen, text = observed.seen, observed.text
    # A batch that began before the server counts for the gauges only; the drain is a batch like others.
    counted = seen[-int(total(text, "skypane_batches_total")) :]
    assert counted
    assert observed.running[0] == 1
    assert value(text, "skypane_running", stream="checkpoint") == 0
    assert total(text, "skypane_rows_total") == sum(one.rows for one in counted)
    assert total(text, "skypane_late_rows_total") == sum(one.late_rows for one in counted)
    for source in ("a", "b", "None"):
        told = sum(one.late_by_source.get(source, 0) for one in counted)
        assert total(text, "skypane_late_rows_total", source=source) == told
    assert total(text, "skypane_windows_total") == sum(one.windows for one in counted)
    assert total(text, "skypane_punctuation_timestamp_seconds") == (seen[-1].punctuation or 0) / 1e6
    took = sum(one.seconds["total"] for one in counted)
    assert total(text, "skypane_batch_duration_seconds_sum") == pytest.approx(took)
    names = {name for name, _ in values(text)}
    known = {RUNNING.name, *(measure.name for measure in OF_STREAMS), *(measure.name for measure in OF_QUERIES)}
    assert {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in names} <= known


def test_opentelemetry_gets_what_the_batches_report(observed: Observed):
    seen = observed.seen
    assert observed.running[1] == 1
    for name, number in {
        "skypane.running": 0,
        "skypane.batches": len(seen),
        "skypane.rows": sum(one.rows for one in seen),
        "skypane.late_rows": sum(one.late_rows for one in seen),
        "skypane.windows": sum(one.windows for one in seen),
        "skypane.batch_duration": len(seen),
        "skypane.punctuation_timestamp": (seen[-1].punctuation or 0) / 1e6,
    }.items():
        of_stream = (one for (other, labels), one in observed.exported.items()
                     if other == name and ("stream", "checkpoint") in labels)  # fmt: skip
        assert sum(of_stream) == number, name


def test_a_server_that_is_opened_before_the_query_counts_each_batch_once(spark: SparkSession, tmp_path: Path):
    with sp.MetricsServer(HERE) as server:
        handle = job_of(spark, tmp_path).start()
        until(lambda: len(handle.recent_metrics()) == 4)  # all are committed before the server learns of the query
        server.watch(handle)
        handle.stop()
        assert total(text_at(server.url), "skypane_batches_total") == 4
        assert total(text_at(server.url), "skypane_rows_total") == 160


def test_a_query_that_starts_again_continues_its_counters(spark: SparkSession, tmp_path: Path):
    """A new server, as that of a new process, begins at 0 and knows the state that the last batch has left."""
    job = job_of(spark, tmp_path)
    with sp.MetricsServer(HERE) as server:
        for batches in (4, 8):
            handle = job.start()
            server.watch(handle)
            until(lambda handle=handle, batches=batches: len(handle.recent_metrics()) == batches)  # type: ignore[misc]
            handle.stop()
            write_batches(tmp_path / "in", late_rows(8, batches=8)[4:], first=4)
        assert total(text_at(server.url), "skypane_batches_total") == 8
    with sp.serve_metrics(handle, address=HERE) as other:
        text = text_at(other.url)
    assert total(text, "skypane_batches_total") == 0
    assert total(text, "skypane_open_panes") == handle.recent_metrics(1)[0].open_panes > 0


def test_several_queries_have_one_endpoint_and_a_name_stands_for_one_checkpoint(spark: SparkSession, tmp_path: Path):
    handles = [job_of(spark, tmp_path / name).start(name=name) for name in ("one", "other")]
    unnamed = job_of(spark, tmp_path / "third").start()
    fourth = job_of(spark, tmp_path / "fourth").start()
    with sp.MetricsServer(HERE) as server:
        for handle in (*handles, unnamed):
            server.watch(handle)
        with pytest.raises(sp.ConfigError, match=r"both named 'checkpoint'.* start one with name="):
            server.watch(fourth)
        server.watch(fourth, name="fourth")
        for handle in (*handles, unnamed, fourth):
            handle.stop()
        text = text_at(server.url)
    assert {dict(labels)["stream"] for name, labels in values(text) if name == "skypane_running"} == {
        "one", "other", "checkpoint", "fourth",
    }  # fmt: skip


class Held:
    """A sink whose third write waits."""

    def __init__(self) -> None:
        self.entered, self.let_go = threading.Event(), threading.Event()

    def __call__(self, _: DataFrame, batch_id: int) -> None:
        if batch_id == 2:
            self.entered.set()
            assert self.let_go.wait(LIMIT)


def test_a_scrape_during_a_batch_shows_the_last_one_and_does_not_wait(spark: SparkSession, tmp_path: Path):
    sink = Held()
    with sp.MetricsServer(HERE) as server:
        handle = job_of(spark, tmp_path, output=sink).start()
        server.watch(handle)
        server.watch(handle)
        assert sink.entered.wait(LIMIT)
        text = text_at(server.url)
        assert total(text, "skypane_rows_total") == 80
        assert total(text, "skypane_running") == 1
        sink.let_go.set()
        until(lambda: len(handle.recent_metrics()) == 4)
        handle.stop()
        assert total(text_at(server.url), "skypane_rows_total") == 160


def test_a_failed_query_is_exposed_as_not_running(spark: SparkSession, tmp_path: Path):
    def fails(*_: Any) -> None:
        raise OSError("no space left")

    with sp.MetricsServer(HERE) as server:
        handle = job_of(spark, tmp_path, output=fails).start()
        server.watch(handle)
        with pytest.raises(sp.SkypaneError, match="no space left"):
            handle.await_termination(LIMIT)
        assert total(text_at(server.url), "skypane_running") == 0


def test_a_listener_that_fails_leaves_the_others_and_the_query_alone(spark: SparkSession, tmp_path: Path):
    seen: list[int] = []

    def fails(_: sp.BatchMetrics) -> None:
        raise ValueError("not mine")

    job = job_of(spark, tmp_path)
    handle = job.start(on_batch=fails)
    handle.add_listener(lambda metrics: seen.append(metrics.batch_id))
    until(lambda: len(handle.recent_metrics()) == 4)
    handle.stop()
    assert seen == list(range(4))[-len(seen) :]
    assert seen
    assert finish(job) == []


def test_the_log_has_one_line_for_each_batch(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    job = job_of(spark, tmp_path)
    with caplog.at_level(logging.INFO, "skypane"):
        seen = finish(job)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("skypane")]
    assert [line for line in lines if line.startswith("batch ")] == [
        f"{metrics}; so far {metrics.account['']}; checkpoint {tmp_path / 'checkpoint'}" for metrics in seen
    ]


JOB = """
name: offers
source: {{format: rate}}
query: {{kind: skyline, preference: "value MAX"}}
window: {{time: timestamp, length: 1 seconds}}
output: {{path: {folder}/out}}
checkpoint: {folder}/checkpoint
"""


@pytest.mark.slow
def test_a_job_serves_its_metrics_while_it_runs(tmp_path: Path):
    (tmp_path / "job.yaml").write_text(JOB.format(folder=tmp_path))
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "skypane", "run", "job.yaml", "--metrics", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True)
    url = f"http://127.0.0.1:{port}/metrics"

    def answered() -> bool:
        assert process.poll() is None
        try:
            return total(text_at(url), "skypane_windows_total", stream="offers") > 2
        except URLError:  # it does not listen yet
            return False

    until(answered)
    assert total(text_at(url), "skypane_running", stream="offers") == 1
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert f"metrics   {url}" in output


EXPORTING = """
import sys
from pathlib import Path
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from skypane.cli.main import main

exporter = ConsoleMetricExporter(Path("exported").open("w"), lambda data: data.to_json(indent=None) + "\\n")
set_meter_provider(MeterProvider([PeriodicExportingMetricReader(exporter, export_interval_millis=1e9)]))
sys.exit(main(["run", "job.yaml", "--opentelemetry"]))
"""


@pytest.mark.slow
def test_a_job_gives_its_metrics_to_the_opentelemetry_of_its_process_also_the_last_ones(tmp_path: Path):
    (tmp_path / "job.yaml").write_text(JOB.format(folder=tmp_path))
    log = tmp_path / "checkpoint-metrics" / "metrics.jsonl"
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", EXPORTING], cwd=tmp_path, stderr=errors, text=True, start_new_session=True
        )
        until(lambda: process.poll() is not None or (log.exists() and answered_windows(log) > 2))
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(LIMIT) == 130, (tmp_path / "errors").read_text()
    assert "Traceback" not in (tmp_path / "errors").read_text()
    (line,) = (tmp_path / "exported").read_text().splitlines()
    (scope,) = json.loads(line)["resource_metrics"][0]["scope_metrics"]
    found = {one["name"]: one["data"]["data_points"] for one in scope["metrics"]}
    (windows,) = found["skypane.windows"]
    assert windows["attributes"] == {"stream": "offers", "query": ""}
    assert windows["value"] == answered_windows(log)


def answered_windows(log: Path) -> int:
    """Return the number of windows in a log of metrics, the last line of which may not be complete yet."""
    return sum(json.loads(line)["windows"] for line in log.read_text().splitlines(keepends=True) if line.endswith("\n"))


PROMETHEUS = shutil.which("prometheus")


@pytest.mark.slow
@pytest.mark.skipif(PROMETHEUS is None, reason="PROMETHEUS ITSELF READS NO QUERY: it is not installed")
def test_prometheus_reads_a_running_query(spark: SparkSession, tmp_path: Path):
    (port,) = free_ports(1)
    handle = job_of(spark, tmp_path).start(name="read")
    with sp.MetricsServer(HERE) as server:
        server.watch(handle)
        target = server.url.removeprefix("http://").removesuffix("/metrics")
        (tmp_path / "prometheus.yaml").write_text(
            shipped_files.text("prometheus.yaml").replace("localhost:9464", target).replace("15s", "1s")
        )
        (tmp_path / "alerts.yaml").write_text(shipped_files.text("alerts.yaml"))
        options = {
            "config.file": tmp_path / "prometheus.yaml",
            "storage.tsdb.path": tmp_path / "series",
            "web.listen-address": f"127.0.0.1:{port}",
        }
        command = [str(PROMETHEUS), *(f"--{name}={value}" for name, value in options.items())]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as prometheus:
            try:
                until(lambda: asked(port, 'skypane_rows_total{stream="read"}') == 160)
                until(lambda: asked(port, 'skypane_running{stream="read"}') == 1)
                handle.stop()
                until(lambda: asked(port, 'skypane_running{stream="read"}') == 0)
            finally:
                prometheus.terminate()


def asked(port: int, expression: str) -> float | None:
    """Return what Prometheus answers to an expression; None if it has no value yet, or does not listen yet."""
    try:
        text = text_at(f"http://127.0.0.1:{port}/api/v1/query?{urlencode({'query': expression})}")
    except URLError:
        return None
    found = json.loads(text)["data"]["result"]
    return float(found[0]["value"][1]) if found else None
