"""Workers for a rate that goes x10 at a stated instant, on a cluster of executors: with the statement, and reacting only.

    python -m measure.admission.stated [--docs docs] [--executors fixed|dynamic|follow] [--before 45] [--after 45]

Growing files are read by a stream on Spark's local-cluster, whose executors are processes of one core each. Once the query
runs, the list of its inputs is written again with "x10 at ..." of the wall clock, and files grow ten times as fast from
that instant on. The other run has the same rows and policies, and no statement. The work of each row is to wait 20 ms for
a service (service.py), so that four workers are four workers on any machine; sockets, rows, tasks, executors and
batches are real. With `--executors dynamic` Spark's dynamic allocation adds and removes executors, with `follow` the stream
requests them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal
from zoneinfo import ZoneInfo

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from measure.admission.load import TICK, Feed, Load, files
from measure.elastic.executor_times import executor_times
from measure.elastic.runs import started
from measure.elastic.service import SECONDS, Asked, service
from measure.tables import markdown_table, replace_between
from skypane.control.sizing import workers_for
from skypane.runtime.spark.machine.executors import FOLLOWING
from skypane.types import FloatArray

MOST: Final = 4
"""Executors of one core, and readers at most."""
MASTER: Final = f"local-cluster[{MOST},1,1024]"
INPUTS: Final = 8
FACTOR: Final = 10
RATE: Final = 0.25 / SECONDS
"""Rows a second of all inputs before the change, which keep a quarter of a worker busy."""
BOUND: Final = 5.0
"""L, in seconds."""
LEAD: Final = 25.0
NEEDED: Final = workers_for(FACTOR * RATE, SECONDS, sp.Readers(MOST).headroom)
"""Workers that keep up with the rate after the change."""
WAYS: Final = {"stated": True, "reacting only": False}
ZONE: Final = ZoneInfo("Europe/Zurich")
WARM: Final = 5.0
PATIENCE: Final = 600.0
DYNAMIC: Final = dict(FOLLOWING) | {
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(MOST),
    "spark.dynamicAllocation.executorIdleTimeout": "3s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "3s",
}
_FOLLOW: Final[dict[str, Literal["follow"]]] = {"follow": "follow"}
CONF: Final = {
    "spark.ui.enabled": "true",  # the status page tells when executors came and went
    "spark.ui.port": "0",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@dataclass
class Way:
    """A run: its batches, when each row was written, when executors came and went, and the instant of the change.

    begin, end   of what is looked at; all times are seconds since the epoch
    executors    (from, to) of each one
    """

    begin: float
    instant: float
    end: float
    seen: list[sp.BatchMetrics]
    written: FloatArray
    executors: list[tuple[float, float]] = field(default_factory=list)

    @property
    def batches(self) -> list[sp.BatchMetrics]:
        """The batches that began within the time that is looked at."""
        return [batch for batch in self.seen if self.begin <= batch.started_at < self.end]

    @property
    def waits(self) -> FloatArray:
        """Seconds that the rows written after the change waited for the commit of their batch, or until the end at least."""
        ends = np.array([batch.started_at + batch.seconds["total"] for batch in self.seen])
        read = np.cumsum([batch.rows for batch in self.seen])
        at = np.searchsorted(read, np.arange(len(self.written)), side="right")
        done = np.append(ends, max(self.end, ends[-1]))[at]
        return np.asarray((done - self.written)[self.written >= self.instant], np.float64)

    @property
    def worker_seconds(self) -> float:
        """Tasks of each batch, for as long as the next one has not begun."""
        starts = [batch.started_at for batch in self.batches]
        return float(np.diff([*starts, self.end]) @ [len(batch.task_rows) for batch in self.batches])

    @property
    def executor_seconds(self) -> float:
        return sum(max(0.0, min(to, self.end) - max(came, self.begin)) for came, to in self.executors)

    def decided(self) -> float:
        """Return when a batch was first planned for as many workers as the change needs, in seconds from it."""
        return self._first(lambda batch: batch.workers["plq"] >= NEEDED)

    def used(self) -> float:
        """Return when a batch with as many tasks as the change needs began, in seconds from it."""
        return self._first(lambda batch: len(batch.task_rows) >= NEEDED)

    def _first(self, enough: Callable[[sp.BatchMetrics], bool]) -> float:
        """Return the first batch after the last one that did not have enough before it; NaN without one."""
        there = [(batch.started_at, enough(batch)) for batch in self.batches]
        few = [at for at, is_enough in there if not is_enough and at < self.instant]
        return next(
            (at - self.instant for at, is_enough in there if is_enough and at > max(few, default=0.0)), math.nan
        )

    def executors_at(self, at: float) -> int:
        return sum(came <= at < to for came, to in self.executors)

    def granted(self) -> float:
        """Return when as many executors as the change needs were there for the first time since the lead time began."""
        times = [self.instant - LEAD, *sorted(came for came, _ in self.executors if came > self.instant - LEAD)]
        return next((at - self.instant for at in times if self.executors_at(at) >= NEEDED), math.nan)

    def cells(self) -> list[str]:
        waits = self.waits
        return [
            f"{self.decided():+.0f}", f"{self.used():+.0f}", f"{self.granted():+.0f}", str(self.executors_at(self.instant)),
            f"{np.median(waits):.1f}", f"{np.percentile(waits, 95):.1f}", f"{waits.max():.1f}", f"{(waits <= BOUND).mean():.0%}",
            f"{self.worker_seconds:.0f}", f"{self.executor_seconds:.0f}",
        ]  # fmt: skip


def run(
    spark: SparkSession,
    folder: Path,
    port: int,
    times: tuple[float, float],
    *,
    stated: bool,
    executors: Literal["follow"] | None,
) -> Way:
    """Let files grow, at x10 after the first of both times in seconds; return what became of the batches."""
    before, after = times
    (folder / "in").mkdir(parents=True)
    seen: list[sp.BatchMetrics] = []
    written: list[float] = []
    feeds = grown(folder / "in", written)
    for feed in feeds:
        feed.tick(0.0, 1 / (feed.rate * TICK))
    listed(folder, {})
    handle = job(spark, folder, port, executors).start(on_batch=seen.append)
    until(lambda: bool(seen), PATIENCE, "the query does not start")
    begin = time.time()
    instant = float(math.ceil(begin + before))
    if stated:
        listed(folder, {"changes": f"x{FACTOR} at {datetime.fromtimestamp(instant, ZONE).isoformat()}"})
    seconds = instant - begin + after
    load = Load(feeds, factor=lambda share: FACTOR if share * seconds >= instant - begin else 1)
    load.run(seconds)
    until(lambda: sum(batch.rows for batch in seen) >= len(written), after, "")
    handle.stop(timeout=1)
    return Way(begin, instant, begin + seconds, seen, np.array(written), executor_times(spark))


def grown(folder: Path, written: list[float]) -> list[Feed]:
    """Return files that grow, and note in `written` when each of their rows was written."""

    def noted(send: Callable[[list[bytes]], None]) -> Callable[[list[bytes]], None]:
        def write(rows: list[bytes]) -> None:
            written.extend([time.time()] * len(rows))
            send(rows)

        return write

    given = files(folder, INPUTS, RATE)
    return [Feed(one.name, one.rate, noted(one.send), credit=at / INPUTS) for at, one in enumerate(given)]


def listed(folder: Path, meta: dict[str, str]) -> None:
    """Write the list of inputs, in one step."""
    draft = folder / "draft.json"
    draft.write_text(json.dumps([{"path": f"{folder}/in/*.jsonl", "meta": meta} if meta else f"{folder}/in/*.jsonl"]))
    draft.rename(folder / "inputs.json")


def job(spark: SparkSession, folder: Path, port: int, executors: Literal["follow"] | None) -> sp.Job:
    """Return the stream, whose readers and workers follow from one bound on latency."""
    readers = sp.Readers(max_readers=MOST, latency=f"{BOUND:g} seconds", idle_timeout=2)
    rows = sp.inputs(spark, folder / "inputs.json", "n long, at double", readers=readers, lead=f"{LEAD:g} seconds")
    offers = rows.select(
        sf.hash("input", "n").cast("long").alias("id"),
        sf.timestamp_seconds("at").alias("ts"),
        (sf.pmod(sf.hash("input", "n"), sf.lit(1000)) / 1000).alias("price"),
        (sf.pmod(sf.hash("n", "input"), sf.lit(1000)) / 1000).alias("rating"),
    )
    elastic = sp.Model(
        latency=f"{BOUND:g} seconds", max_workers=MOST + 1, max_plq=MOST, max_wlq=1, every=1, executors=executors
    )
    return sp.stream(
        offers, Asked(port), time="ts", window="4 seconds", slide="2 seconds", progress=sp.Watermark("1 second"),
        checkpoint=folder / "checkpoint", output=folder / "out", workers=sp.WorkerOptions(wlq_workers=1, elastic=elastic),
    )  # fmt: skip


def until(true: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until it is true; after so many seconds raise TimeoutError, or if `what` is "" go on."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            if what:
                raise TimeoutError(what)
            return
        time.sleep(0.1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both ways, and print what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--executors", choices=["fixed", "dynamic", "follow"], default="fixed")
    parser.add_argument("--before", type=float, default=45.0)
    parser.add_argument("--after", type=float, default=45.0)
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    given = parser.parse_args(arguments)
    conf = CONF | (DYNAMIC if given.executors == "dynamic" else {})
    runs, follow = {}, _FOLLOW.get(given.executors)
    with tempfile.TemporaryDirectory(prefix="skypane-stated-") as folder, service() as port:
        spark = started(MASTER, conf)
        # What the driver loads and compiles in its first batches is not measured.
        run(spark, Path(folder) / "first", port, (WARM, WARM), stated=False, executors=None)
        for way in given.ways:
            times = given.before, given.after
            runs[way] = run(spark, Path(folder) / way, port, times, stated=WAYS[way], executors=follow)
            shown(way, runs[way])
        spark.stop()
    head = ("", f"{NEEDED} workers decided (s from the change)", "in use", f"{NEEDED} executors there", "executors at the change",
            "a row's wait after the change, median (s)", "95 %", "longest", "within 5 s", "worker-seconds", "executor-seconds")  # fmt: skip
    table = markdown_table(head, [[way, *one.cells()] for way, one in runs.items()])
    text = f"{table}\n\nLoad of the machine {os.getloadavg()[2]:.1f}."
    print(text)
    if given.docs is not None:
        replace_between(given.docs / "admission.md", f"stated, {given.executors} executors", text)


def shown(way: str, one: Way) -> None:
    """Print a line for each batch."""
    for batch in one.seen:
        at = batch.started_at
        rate = batch.decision("rate")
        because = "" if rate is None else rate.because
        print(
            f"{way} {at - one.instant:+6.1f} s {batch.seconds['total']:.1f} s, {batch.rows} rows, {len(batch.task_rows)} tasks, "
            f"workers {batch.workers['plq']}, {one.executors_at(at)} executors {because}",
            flush=True,
        )


if __name__ == "__main__":
    main()
