"""Run by test_following_executors as a process of its own: a query whose executors follow its workers, while some are killed.

    python -m tests.runtime.following_driver FOLDER local-cluster|standalone [SECONDS [KILL_EVERY]]

Heavy batches come until there are as many executors as tasks, then light ones until there is one, and so on for SECONDS. It
feeds itself: a batch that is committed puts the next one into the source's folder. Every KILL_EVERY seconds one executor,
chosen at random, gets a SIGKILL, unless no batch was committed since the last one. It prints one line of JSON: what became of
each batch, and how many were killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.nature.processes import family
from tests.runtime import executors_driver
from tests.runtime.cluster import standalone
from tests.runtime.executors_driver import SMALL_EXECUTORS, Feed, fed_job
from tests.runtime.streams import SECOND, late_rows

import skypane as sp
from skypane.runtime.spark.machine.session import session

FILES = executors_driver.FILES
KILLS = 6
PATIENCE = 600
"""Seconds after SECONDS within which the stream ends, whatever has become of executors."""
CONF = SMALL_EXECUTORS | {
    # Each kill fails the tasks that run there, and the stage that reads what they had written for an exchange; and a cluster gives an
    # application up whose executors end again and again.
    "spark.task.maxFailures": "1000",
    "spark.stage.maxConsecutiveAttempts": "1000",
    "spark.deploy.maxExecutorRetries": "-1",
}


def batches(seconds: float) -> list[pa.Table]:
    """Return more batches than will be fed."""
    return late_rows(3, batches=400 + round(10 * seconds), start=1_000 * SECOND)


@dataclass(kw_only=True)
class FollowingFeed(Feed):
    """Heavy and light batches in turn.

    rounds  how often the executors have grown to as many as there are tasks, and shrunk to one
    wanted  kills without which it does not end: on a busy machine they take longer than `seconds`
    """

    seconds: float
    wanted: int
    rounds: int = 0
    killed: int = 0

    def _loads(self) -> Iterator[int]:
        while self._in_time(self.seconds) or not self.rounds or self.killed < self.wanted:
            for load, until in ((30, FILES), (0, 1)):
                yield load
                while self.seen[-1].executors != until:
                    if not self._in_time(self.seconds + PATIENCE):
                        return
                    yield load
            self.rounds += 1

    def kill(self, every: float) -> None:
        """Kill an executor now and then until the stream ends.

        A batch is committed between two kills: on a busy machine executors start no faster than they would be killed. The first kill
        may come in the first batch.
        """
        chance, before = random.Random(7), -1
        while not self.ended.wait(every):
            if len(self.seen) > before and (found := family(os.getpid()).executors):
                os.kill(chance.choice(found), signal.SIGKILL)
                before = len(self.seen)
                self.killed += 1


def run(spark: SparkSession, folder: Path, seconds: float, every: float | None) -> dict[str, Any]:
    """Run the query until its feed ends; return what became of it."""
    wanted = 0 if every is None else KILLS
    feed = FollowingFeed(folder=folder, rows=iter(batches(seconds)), seconds=seconds, wanted=wanted)
    if every is not None:
        threading.Thread(target=feed.kill, args=[every], daemon=True).start()

    def note(batch: sp.BatchMetrics) -> None:
        feed.seen.append(batch)
        decision = batch.decision("executors")
        print(f"{batch} {batch.workers}: {decision and decision.because}", file=sys.stderr, flush=True)
        if not feed.more():
            handle.stop()

    handle = fed_job(spark, folder, executors="follow").start(on_batch=note)
    handle.await_termination()
    shown = [_shown(one) for one in feed.seen]
    return {"batches": shown, "killed": feed.killed, "rounds": feed.rounds, "explained": handle.explain()}


def _shown(batch: sp.BatchMetrics) -> dict[str, Any]:
    decision = batch.decision("executors")
    return {"workers": batch.workers["plq"], "there": batch.executors, "requested": decision and decision.value}


def main(arguments: Sequence[str]) -> None:
    folder, where, *rest = arguments
    seconds, every = (float(rest[0]) if rest else 0.0), (float(rest[1]) if len(rest) > 1 else None)
    cluster: AbstractContextManager[str] = nullcontext(f"local-cluster[{FILES},1,1024]")
    if where == "standalone":
        cluster = standalone(Path(folder) / "cluster", cores=FILES)
    with cluster as master:
        spark = session(master, "skypane-following", CONF)
        print(json.dumps(run(spark, Path(folder), seconds, every)))
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
