"""Run by test_executors as a process of its own: a query on a cluster whose executors are to come and go with its load.

It feeds itself: a batch that is committed puts the next one into the source's folder, so that nothing depends on how fast
the machine is. It prints one line of JSON: the executors that there ever were, the metrics of each batch, and whom it killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.runtime.cluster import FRUGAL, standalone
from tests.runtime.driver import SCHEMA, WINDOWS
from tests.runtime.elastic_driver import CostOption, Laborious
from tests.runtime.streams import SECOND, late_rows, read_batches, write_batches

import skypane as sp
from skypane.runtime.spark.machine.executors import FOLLOWING
from skypane.runtime.spark.machine.session import session
from skypane.types import Length

FILES = 3
"""Source partitions of each batch, and executors of one core each at most."""
HEAVY = 6
"""Heavy batches at least; where executors are granted they go on until one has joined the first."""
TRIGGER = "15 seconds"
"""Longer than an executor may idle, with files of a shuffle too: batches that follow at once give each executor a task now and
then, and none goes."""
SECONDS = 600
"""The stream ends by then, whatever has become of executors."""

CONF = dict(FOLLOWING) | {
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(FILES),
    "spark.dynamicAllocation.executorIdleTimeout": "10s",
    # Rows of a heavy batch may have been exchanged, and the heaps are so large that nothing collects the shuffle.
    "spark.dynamicAllocation.shuffleTracking.timeout": "10s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.driver.memory": "512m",
    "spark.network.timeout": "900s",  # the machine may be busy with other things
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.executor.extraJavaOptions": FRUGAL,
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.sql.files.openCostInBytes": "1g",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
}


def batches() -> list[pa.Table]:
    """Return more batches than will be fed."""
    return late_rows(3, batches=400, start=1_000 * SECOND)


def executors(spark: SparkSession) -> list[dict[str, Any]]:
    """Return what Spark's own status page shows of all executors, those that are gone with them."""
    context = spark.sparkContext
    where = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/allexecutors"
    with urllib.request.urlopen(where) as answer:  # noqa: S310 - of this machine
        return [one for one in json.load(answer) if one["id"] != "driver"]


@dataclass
class Feed:
    """Puts batches of three files into a folder, one when the one before is committed."""

    spark: SparkSession
    folder: Path
    granted: int
    seen: list[sp.BatchMetrics] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.loads = self._loads()
        self.rows = iter(batches())
        self.more()

    def _loads(self) -> Iterator[int]:
        """Yield the hundredths of a second that each pane of the next batch takes."""
        for _ in range(HEAVY):
            yield 30
        while self.granted > 1 and not self._joined() and time.monotonic() < self.began + SECONDS / 2:
            yield 30
        while not self._gone() and time.monotonic() < self.began + SECONDS:
            yield 0

    def _joined(self) -> bool:
        return bool(self.killed) and sum(one["isActive"] for one in executors(self.spark)) > 1

    def _gone(self) -> bool:
        left = sum(one["isActive"] for one in executors(self.spark))
        return left <= 1 and self.seen[-1].plq_workers == 1

    def more(self) -> bool:
        """Put the next batch where the source finds it, in one step; return False if there is none."""
        load = next(self.loads, None)
        if load is None:
            return False
        number, table = len(self.seen), next(self.rows)
        at = table.schema.get_field_index("price")
        draft = self.folder / f"draft-{number}"
        write_batches(
            draft, [table.set_column(at, "price", pa.array([float(load)] * table.num_rows))], files=FILES, first=number
        )
        (self.folder / "in").mkdir(exist_ok=True)
        draft.rename(self.folder / "in" / f"{number:05d}")
        return True

    def kill_one(self) -> None:
        """Kill the second executor that is started, while it starts."""
        while not self.killed and time.monotonic() < self.began + SECONDS:
            found = running_executors(os.getpid())
            if len(found) > 1:
                os.kill(max(found), signal.SIGKILL)
                self.killed.append(max(found))
            threading.Event().wait(0.1)


def running_executors(pid: int) -> list[int]:
    """Return the processes of executors below this one."""
    return [found for found in _descendants(pid) if b"CoarseGrainedExecutorBackend" in _command(found)]


def _descendants(pid: int) -> list[int]:
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended meanwhile
            continue
    found, generation = [], [pid]
    while generation:
        generation = [child for child, parent in parents.items() if parent in generation]
        found += generation
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def run(spark: SparkSession, folder: Path, granted: int) -> dict[str, Any]:
    """Run the query until its feed ends; return what became of it."""
    feed = Feed(spark, folder, granted)
    job = sp.stream(
        read_batches(spark, folder / "in" / "*", SCHEMA, files=FILES), Laborious(), time="ts",
        window=Length(WINDOWS.length), slide=Length(WINDOWS.slide),
        checkpoint=folder / "checkpoint", output=folder / "out",
        workers=sp.WorkerOptions(
            plq_workers=1, wlq_workers=1, elastic=CostOption(max_workers=FILES + 2, every=1, cooldown=0)
        ),
    )  # fmt: skip
    threading.Thread(target=feed.kill_one, daemon=True).start()

    def note(batch: sp.BatchMetrics) -> None:
        feed.seen.append(batch)
        active = [one["id"] for one in executors(spark) if one["isActive"]]
        print(f"{batch} in {batch.plq_workers} tasks, executors {', '.join(active)}", file=sys.stderr, flush=True)
        if not feed.more():
            handle.stop()

    handle = job.start(on_batch=note, trigger=TRIGGER)
    handle.await_termination()
    shown = [{"workers": one.workers, "tasks": one.plq_workers, "began": one.started_at} for one in feed.seen]
    return {"executors": executors(spark), "batches": shown, "killed": feed.killed, "explained": handle.explain()}


def main(folder: Path, granted: int) -> None:
    with standalone(folder / "cluster", cores=granted) as master:
        spark = session(master, "skypane-executors", CONF)
        print(json.dumps(run(spark, folder, granted)))
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
