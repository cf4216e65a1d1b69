"""Run by test_stated_on_cluster as a process of its own: a stream on executors whose inputs get ten times as many rows.

It feeds itself: a committed batch puts the next rows into the files. When the workers have settled at one, the list of inputs
is written again; if the change is stated, it names the time of the change. From that time on ten times as many rows come.
It prints a line of JSON for each batch, and drains the stream. With `follow` executors follow the workers.

    python -m tests.runtime.many.stated_driver FOLDER [stated] [follow]
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Literal

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.java import options
from tests.runtime.streams import CountBySensor

import skypane as sp
from skypane.plan import Plan
from skypane.progress.watermark import Watermark
from skypane.runtime.spark.machine.session import session
from skypane.windows import Windows

MOST = 2
"""Executors of one core, and workers at most."""
FILES = 4
ROWS = 20
"""Rows that a batch brings before the change."""
STATED = "x10000"
"""More than what comes, x10, which one worker can do: so what decides is the statement alone, however fast the machine is."""
SETTLED = 3
"""Batches in a row with one worker, after which the change is set."""
AFTER = 2
"""Batches with rows of the change, after which the stream ends."""
AHEAD = 8
"""Batches, each as long as the last one, from the statement to the change; 20 s at least, or ..."""
STARTS = 45.0
"""... these seconds, in which an executor starts on a machine that may be busy with other things."""
PATIENCE = 900
SCHEMA = "ts timestamp, sensor string"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = Plan(CountBySensor(), Windows.of("20 seconds", "10 seconds"), "ts", Watermark("2 minutes"))
CONF = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": options(),
    "spark.network.timeout": "900s",  # the machine may be busy with other things
    "spark.python.authenticate.socketTimeout": "300s",
}


@dataclass
class Fed:
    """Files that grow by some rows with each batch; the times of rows of the change are at least `change`.

    changed  of each batch whether rows of the change have been read by its end
    instant  when the change comes, in seconds since the epoch; None: the workers have not settled yet
    """

    folder: Path
    is_stated: bool
    follows: bool = False
    seen: list[sp.BatchMetrics] = field(default_factory=list)
    changed: list[bool] = field(default_factory=list)
    instant: float | None = None
    sent: int = 0
    change: datetime | None = None
    done: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        (self.folder / "in").mkdir(parents=True)
        self.list({})
        self.more(ROWS)

    def list(self, meta: dict[str, str]) -> None:
        draft = self.folder / "draft.json"
        draft.write_text(json.dumps([{"path": f"{self.folder}/in/*.jsonl", "meta": meta}]))
        draft.rename(self.folder / "inputs.json")

    def more(self, rows: int) -> None:
        """Send rows, a second of event time apart by tens, in turn to the files."""
        numbers = range(self.sent, self.sent + rows)
        self.sent += rows
        for at in range(FILES):
            lines = [
                json.dumps({"ts": time_of(number).isoformat(), "sensor": "abc"[number % 3]})
                for number in numbers[at::FILES]
            ]
            with (self.folder / "in" / f"{at}.jsonl").open("a") as file:
                file.write("".join(f"{line}\n" for line in lines))

    def __call__(self, batch: sp.BatchMetrics) -> None:
        opened = self.instant is not None and time.time() >= self.instant
        newest, change = batch.newest or 0, math.inf if self.change is None else self.change.timestamp() * 1e6
        self.seen.append(batch)
        self.changed.append(newest >= change)
        print(json.dumps({
            "workers": batch.workers["plq"], "tasks": len(batch.task_rows), "executors": batch.executors, "rows": batch.rows, "opened": opened, "changed": self.changed[-1],
            "because": [one.because for one in batch.decisions if one.what in {"rate", "workers"}],
        }), flush=True)  # fmt: skip
        if self.instant is None and self._settled():
            self.set()
        if opened and self.change is None:
            self.change = time_of(self.sent)
        if sum(self.changed) == AFTER:
            self.done.set()
        if not self.done.is_set():
            self.more(ROWS if self.change is None else 10 * ROWS)

    def _settled(self) -> bool:
        last = self.seen[-SETTLED:]
        return len(self.seen) > SETTLED and all(
            one.workers["plq"] == len(one.task_rows) == 1 and one.executors in {None, 1} for one in last
        )

    def set(self) -> None:
        """Set the time of the change; state it."""
        lasts = time.time() - self.seen[-2].started_at - self.seen[-2].seconds["total"]
        self.instant = math.ceil(time.time() + max(STARTS if self.follows else 20.0, AHEAD * lasts))
        if self.is_stated:
            self.list({"changes": f"{STATED} at {datetime.fromtimestamp(self.instant, UTC).isoformat()}"})


def time_of(number: int) -> datetime:
    """Return the event time of a row."""
    return BEGIN + timedelta(seconds=number / 10)


def rows_sent(folder: Path) -> pa.Table:
    """Return all rows of the files."""
    rows = [
        json.loads(line) for path in sorted((folder / "in").glob("*.jsonl")) for line in path.read_text().splitlines()
    ]
    times = [datetime.fromisoformat(row["ts"]) for row in rows]
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "sensor": [row["sensor"] for row in rows]})


def job(spark: SparkSession, folder: Path, executors: Literal["follow"] | None = None) -> sp.Job:
    """Return the stream; as its source has a fixed number of readers, its workers set the number of tasks."""
    rows = sp.inputs(spark, folder / "inputs.json", SCHEMA, readers=MOST, lead="1 hour")
    elastic = sp.Model(latency="1 minute", max_workers=MOST + 1, max_plq=MOST, max_wlq=1, every=1, executors=executors)
    return sp.stream(
        rows.select("ts", "sensor"), CountBySensor(), time="ts", window="20 seconds", slide="10 seconds", progress=PLAN.progress,
        checkpoint=folder / "checkpoint", output=folder / "out", workers=sp.WorkerOptions(plq_workers=1, wlq_workers=1, elastic=elastic),
    )  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0])
    follows = "follow" in arguments[1:]
    fed = Fed(folder, is_stated="stated" in arguments[1:], follows=follows)
    spark = session(f"local-cluster[{MOST},1,1024]", "skypane-stated", CONF)
    handle = job(spark, folder, "follow" if follows else None).start(on_batch=fed)
    if not fed.done.wait(PATIENCE):
        raise TimeoutError(str(handle.status))
    handle.drain()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
