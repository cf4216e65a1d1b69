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
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.java import options
from tests.nature.processes import family
from tests.runtime.cluster import standalone
from tests.runtime.driver import SCHEMA, WINDOWS
from tests.runtime.elastic_driver import CostOption, Laborious
from tests.runtime.streams import SECOND, late_rows, read_batches, write_batches

import skypane as sp
from skypane.runtime.spark.machine.executors import FOLLOWING
from skypane.runtime.spark.machine.session import session

FILES = 3
"""Source partitions of each batch, and executors of one core each at most."""
HEAVY = 6
"""Heavy batches at least; where executors are granted they go on until one has joined the first."""
TRIGGER = "8 seconds"
"""Longer than an executor may idle, with files of a shuffle too: batches that follow at once give each executor a task now and
then, and none goes."""
SECONDS = 600
"""The stream ends by then, whatever has become of executors."""

SMALL_EXECUTORS = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": options(),
    "spark.network.timeout": "900s",  # the machine may be busy with other things
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.sql.files.openCostInBytes": "1g",
}
CONF = {
    **FOLLOWING,
    **SMALL_EXECUTORS,
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(FILES),
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
    # Rows of a heavy batch may have been exchanged, and the heaps are so large that nothing collects the shuffle.
    "spark.dynamicAllocation.shuffleTracking.timeout": "5s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
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


@dataclass(kw_only=True)
class Feed(ABC):
    """Puts batches of three files into a folder, one when the one before is committed."""

    folder: Path
    rows: Iterator[pa.Table]
    seen: list[sp.BatchMetrics] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.loads = self._loads()
        self.more()

    @abstractmethod
    def _loads(self) -> Iterator[int]:
        """Yield the hundredths of a second that each pane of the next batch takes."""

    def _in_time(self, seconds: float) -> bool:
        return time.monotonic() < self.began + seconds

    def more(self) -> bool:
        """Put the next batch where the source finds it, in one step; return False if there is none."""
        load = next(self.loads, None)
        if load is None:
            self.ended.set()
            return False
        number, table = len(self.seen), next(self.rows)
        at = table.schema.get_field_index("price")
        draft = self.folder / f"draft-{number}"
        heavy = table.set_column(at, "price", pa.array([float(load)] * table.num_rows))
        write_batches(draft, [heavy], files=FILES, first=number)
        (self.folder / "in").mkdir(exist_ok=True)
        draft.rename(self.folder / "in" / f"{number:05d}")
        return True


@dataclass(kw_only=True)
class LoadedFeed(Feed):
    """Heavy batches, until executors have joined where they are granted, and light ones until they are gone."""

    spark: SparkSession
    granted: int
    killed: list[int] = field(default_factory=list)

    def _loads(self) -> Iterator[int]:
        for _ in range(HEAVY):
            yield 30
        while self.granted > 1 and not self._joined() and self._in_time(SECONDS / 2):
            yield 30
        while not self._gone() and self._in_time(SECONDS):
            yield 0

    def _joined(self) -> bool:
        return bool(self.killed) and sum(one["isActive"] for one in executors(self.spark)) > 1

    def _gone(self) -> bool:
        left = sum(one["isActive"] for one in executors(self.spark))
        return left <= 1 and self.seen[-1].plq_workers == 1

    def kill_one(self) -> None:
        """Kill the second executor that is started, while it starts."""
        while not self.killed and self._in_time(SECONDS):
            found = family(os.getpid()).executors
            if len(found) > 1:
                os.kill(max(found), signal.SIGKILL)
                self.killed.append(max(found))
            threading.Event().wait(0.1)


def fed_job(spark: SparkSession, folder: Path, **elastic: Any) -> sp.Job:
    """Return the job over what a feed puts into a folder, whose workers follow the cost of its rows."""
    policy = CostOption(max_workers=FILES + 2, every=1, cooldown=0, **elastic)
    return sp.stream(
        read_batches(spark, folder / "in" / "*", SCHEMA, files=FILES), Laborious(), time="ts", window=WINDOWS,
        progress=sp.Watermark("20 seconds"),
        checkpoint=folder / "checkpoint", output=folder / "out",
        workers=sp.WorkerOptions(plq_workers=1, wlq_workers=1, elastic=policy),
    )  # fmt: skip


def run(spark: SparkSession, folder: Path, granted: int) -> dict[str, Any]:
    """Run the query until its feed ends; return what became of it."""
    feed = LoadedFeed(spark=spark, folder=folder, rows=iter(batches()), granted=granted)
    threading.Thread(target=feed.kill_one, daemon=True).start()

    def note(batch: sp.BatchMetrics) -> None:
        feed.seen.append(batch)
        active = [one["id"] for one in executors(spark) if one["isActive"]]
        print(f"{batch} in {batch.plq_workers} tasks, executors {', '.join(active)}", file=sys.stderr, flush=True)
        if not feed.more():
            handle.stop()

    handle = fed_job(spark, folder).start(on_batch=note, trigger=TRIGGER if granted > 1 else "1 second")
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
