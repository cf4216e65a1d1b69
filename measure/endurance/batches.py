"""Many small batches, one after the other: memory, handles and files after a day of them.

    python -m measure.endurance.batches [--batches 20000] [--minutes 60] [--docs docs]

Two growing files and a client of a receiver, which is a separate process, send one second of event time at a time:
seven rows, some of which are late, have no time, are no valid rows, or have a clock that is a year ahead. Two queries
of one session read them, one second of event time per batch: skylines of windows into a folder with a late sink, and a
continuous skyline with its front. Every 500 batches, after a garbage collection, the run records memory, open files and
threads of the driver, of Java, of Python workers and of the receiver, and the number of files. At the end every row is
accounted for.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Condition

from pyspark.sql import DataFrame, SparkSession
from tests.servers.ports import free_ports

import skypane as sp
from measure.endurance.feed import ROWS, SCHEMA, Feed
from measure.endurance.sample import Sample, lines, taken

EVERY = 500
AHEAD = 3
"""Batches that are fed before the faster query asks for them."""
DOCUMENT = "limits.md"


class Pace:
    """How many batches each query has done, and when the next is to be fed."""

    def __init__(self) -> None:
        self.done = {"windows": 0, "front": 0}
        self.seconds: list[float] = []
        self._changed = Condition()

    def listener(self, query: str) -> Callable[[sp.BatchMetrics], None]:
        """Return what counts the batches of a query."""

        def count(metrics: sp.BatchMetrics) -> None:
            with self._changed:
                self.done[query] += 1
                self.seconds.append(metrics.seconds["total"])
                self._changed.notify()

        return count

    def wait(self, fed: int, patience: float) -> bool:
        """Wait until what was fed is nearly read; return False if no batch has come for so long."""
        with self._changed:
            return self._changed.wait_for(lambda: max(self.done.values()) > fed - AHEAD, patience)


def queries(spark: SparkSession, folder: Path, inputs: list[object]) -> dict[str, sp.Job]:
    """Return both queries, by name, over inputs of their own reading."""

    def rows() -> DataFrame:
        return sp.inputs(spark, inputs, SCHEMA, readers=1, rows_per_trigger=2 * ROWS, malformed_column="bad")

    return {
        "windows": sp.stream(
            rows(),
            sp.Skyline("price MIN, rating MAX", by="sensor"),
            time="ts",
            window="20 seconds",
            slide="10 seconds",
            progress=sp.Watermark("5 seconds"),
            checkpoint=folder / "windows-state",
            output=folder / "windows",
            late=folder / "late",
        ),
        "front": sp.continuous_skyline(
            rows(),
            "price MIN, rating MAX",
            time="ts",
            window="20 seconds",
            by="sensor",
            progress=sp.Watermark("5 seconds"),
            checkpoint=folder / "front-state",
            output=_forgotten,
            front=folder / "front",
        ),
    }


def _forgotten(updates: DataFrame, _batch: int) -> None:
    updates.toArrow()


@contextmanager
def receiver(folder: Path, checkpoints: list[Path]) -> Iterator[tuple[int, socket.socket]]:
    """Run a receiver; yield its process id and a client of it."""
    (port,) = free_ports(1)
    listed = folder / "inputs.json"
    listed.write_text(
        json.dumps(
            {
                "folder": str(folder / "received"),
                "segment_bytes": 1 << 14,
                "read_by": [str(one) for one in checkpoints],
                "inputs": [{"name": "devices", "listen": f"127.0.0.1:{port}", "acknowledge": True}],
            }
        )
    )
    command = [sys.executable, "-m", "skypane", "receive", str(listed)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    try:
        with _client(port) as client:
            yield process.pid, client
    finally:
        process.terminate()
        process.wait()


def _client(port: int) -> socket.socket:
    until = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def run(folder: Path, batches: int, minutes: float, every: int, told: Path | None) -> list[Sample]:
    """Run both queries for so many batches or minutes; return what was noted on the way."""
    spark = sp.session(
        "local[2]", "skypane-endurance", {"spark.driver.memory": "1g", "spark.local.dir": str(folder / "passing")}
    )
    checkpoints = [folder / "windows-state", folder / "front-state"]
    inputs: list[object] = [
        str(folder / "grown" / "*.json"),
        {"segments": str(folder / "received" / "*"), "format": "json"},
    ]
    pace, samples, began = Pace(), list[Sample](), time.monotonic()
    with receiver(folder, checkpoints) as (process, client), Feed(folder / "grown", client) as feed:
        feed.step()
        jobs = queries(spark, folder, inputs)
        handles = {name: job.start(on_batch=pace.listener(name)) for name, job in jobs.items()}
        while min(pace.done.values()) < batches and time.monotonic() - began < minutes * 60:
            while feed.steps < max(pace.done.values()) + AHEAD:
                feed.step()
            if not pace.wait(feed.steps, 300):
                break
            if min(pace.done.values()) >= (len(samples) + 1) * every:
                samples.append(_noted(spark, pace, folder, process, told))
        for handle in handles.values():
            handle.stop(timeout=300)
            handle.await_termination()
        for name, job in jobs.items():
            _finish(name, job, feed.rows)
    return samples


def _noted(spark: SparkSession, pace: Pace, folder: Path, receiver: int, told: Path | None) -> Sample:
    seconds, pace.seconds = pace.seconds, []
    sample = taken(spark, dict(pace.done), sorted(seconds)[len(seconds) // 2], folder, receiver)
    line = json.dumps(asdict(sample))
    print(line, flush=True)
    if told is not None:
        with told.open("a") as file:
            file.write(f"{line}\n")
    return sample


def _finish(name: str, job: sp.Job, rows: int) -> None:
    """Read what is left, and the last windows: each row that was brought is somewhere."""
    handle = job.start(trigger="available now")
    handle.await_termination()
    handle.drain()
    last = handle.recent_metrics(1)[-1]
    print(name, last.batch_id + 1, "batches;", last.totals, flush=True)
    assert last.totals["read"] == last.totals["answered"] + last.totals["late"] + last.totals["quarantined"] == rows


def main() -> None:
    """Run, and write the table into docs/ if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--every", type=int, default=EVERY)
    parser.add_argument("--samples", type=Path, help="a file that each sample is added to")
    parser.add_argument("--docs", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="skypane-endurance-") as folder:
        samples = run(Path(folder), arguments.batches, arguments.minutes, arguments.every, arguments.samples)
    lines(samples, arguments.docs and arguments.docs / DOCUMENT)


if __name__ == "__main__":
    main()
