"""Run by test_executors as a process of its own: a cluster on this machine whose executors come and go with a query's load.

It prints one line of JSON: the executors that there ever were, and the metrics of each batch.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.runtime.driver import SCHEMA, WINDOWS
from tests.runtime.elastic_driver import Laborious
from tests.runtime.streams import read_batches

import skypane as sp
from skypane.runtime.spark.machine.executors import FOLLOWING
from skypane.runtime.spark.machine.session import session
from skypane.types import Length

FILES = 3
"""Source partitions of each batch, and executors of one core each at most."""

CONF = dict(FOLLOWING) | {
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(FILES),
    "spark.dynamicAllocation.executorIdleTimeout": "3s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.driver.memory": "512m",
    "spark.sql.files.openCostInBytes": "1g",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
}


def executors(spark: SparkSession) -> list[dict[str, Any]]:
    """Return what Spark's own status page tells of all executors, those that are gone with them."""
    context = spark.sparkContext
    where = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/allexecutors"
    with urllib.request.urlopen(where) as answer:  # noqa: S310 - of this machine
        return [one for one in json.load(answer) if one["id"] != "driver"]


def kill_one(ended: threading.Event) -> None:
    """Kill the second executor that is started, while it starts."""
    while not ended.is_set():
        found = [pid for pid in _descendants(os.getpid()) if b"CoarseGrainedExecutorBackend" in _command(pid)]
        if len(found) > 1:
            os.kill(max(found), signal.SIGKILL)
            return
        ended.wait(0.05)


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


def main(folder: Path) -> None:
    spark = session(f"local-cluster[{FILES},1,1024]", "skypane-executors", CONF)
    job = sp.stream(
        read_batches(spark, folder / "in", SCHEMA, files=FILES),
        Laborious(),
        time="ts",
        window=Length(WINDOWS.length),
        slide=Length(WINDOWS.slide),
        checkpoint=folder / "checkpoint",
        output=folder / "out",
        elastic=sp.Threshold(max_workers=FILES + 1, most_plq=FILES, target=0.3, every=1, cooldown=0),
        plq_workers=1,
        wlq_workers=1,
    )
    ended, seen = threading.Event(), list[sp.BatchMetrics]()
    threading.Thread(target=kill_one, args=(ended,), daemon=True).start()
    began = time.time()

    def note(batch: sp.BatchMetrics) -> None:
        seen.append(batch)
        print(f"{batch} in {batch.plq_workers} tasks", file=sys.stderr, flush=True)

    handle = job.start(trigger="available now", on_batch=note)
    handle.await_termination()
    ended.set()
    batches = [{"workers": one.workers, "tasks": one.plq_workers, "began": one.started_at} for one in seen]
    print(json.dumps({"began": began, "executors": executors(spark), "batches": batches}))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
