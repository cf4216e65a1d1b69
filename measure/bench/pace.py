"""CPU seconds and latency of a stream that is not busy: files of new rows come at a steady rate, with the current time.

    python -m measure.bench.pace [--rates 0,1,1000] [--seconds 60] [--triggers auto,"0 seconds"]

Windows of 10 s end every second. The rows come from another process, in a file every 50 ms (or a row a file, if rows are
rarer). CPU seconds are those of driver, Java and workers after a warm-up of 20 s. The latency of a window is the
time from the file whose first row lies at or after the window's end to the commit of its answer.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skypane as sp
from measure.processes import cpu_seconds
from measure.tables import markdown_table

WARM_UP = 20.0
"""Seconds before the measurement."""
FILES_PER_SECOND = 20
"""At most; a file has at least one row."""
COLUMNS = "ts timestamp, price double, rating double"


@dataclass(frozen=True, slots=True)
class Quiet:
    """What a stream took in the measured seconds.

    latencies  seconds from the row that completed a window to the commit of its answer
    paused     seconds of pauses
    """

    trigger: str
    rate: float
    seconds: float
    cpu: float
    batches: int
    paused: float
    latencies: Sequence[float]

    @property
    def line(self) -> list[str]:
        """The line of the table."""
        p50, p95 = np.quantile(self.latencies, [0.5, 0.95]) * 1e3 if self.latencies else (np.nan, np.nan)
        return [
            self.trigger,
            f"{self.rate:,g}",
            f"{self.cpu / self.seconds * 60:.1f}",
            f"{self.cpu / self.seconds:.2f}",
            f"{self.batches / self.seconds * 60:.0f}",
            f"{self.cpu / self.batches * 1e3:.0f}" if self.batches else "",
            f"{self.paused / self.seconds:.2f}",
            f"{len(self.latencies)}",
            f"{p50:.0f}",
            f"{p95:.0f}",
        ]


HEAD = [
    "trigger", "rows/s", "CPU s a minute", "cores", "batches a minute", "CPU ms a batch", "share paused", "windows",
    "p50, ms", "p95, ms",
]  # fmt: skip


def feed(folder: Path, rate: float) -> None:
    """Write rows at `rate` a second until standard input is closed."""
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    every = 1 / min(rate, FILES_PER_SECOND)
    rows, rng, began, number = round(rate * every), np.random.default_rng(0), time.time(), 0
    last = began
    while not ended.wait(max(0.0, began + (number + 1) * every - time.time())):
        now = time.time()
        times = np.linspace(last, now, rows, endpoint=False) + (now - last) / rows
        table = pa.table(
            {
                "ts": pa.array((times * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
                "price": rng.random(rows),
                "rating": rng.random(rows),
            }
        )
        pq.write_table(table, folder / ".draft")
        (folder / ".draft").rename(folder / f"{number:07d}.parquet")
        last, number = now, number + 1


def _wait_for_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def completions(folder: Path) -> tuple[list[float], list[float]]:
    """Return the newest event time of each file, and when it was there, in seconds, oldest first."""
    files = sorted(folder.glob("*.parquet"))
    newest = [pq.read_table(path, columns=["ts"])["ts"].cast(pa.int64())[-1].as_py() / 1e6 for path in files]
    return newest, [path.stat().st_mtime for path in files]


def run(trigger: str, rate: float, seconds: float, folder: Path) -> Quiet:
    """Measure one stream."""
    spark, source = sp.session("local[2]", "skypane-bench"), folder / "in"
    source.mkdir(parents=True)
    job = sp.stream(
        spark.readStream.schema(COLUMNS).parquet(str(source)),
        "price MIN, rating MAX",
        time="ts",
        window="10 seconds",
        slide="1 second",
        progress=sp.Watermark("0 seconds"),
        checkpoint=folder / "checkpoint",
        output=folder / "out",
    )
    seen: list[tuple[float, sp.BatchMetrics]] = []
    feeder = None
    if rate:
        command = [sys.executable, "-m", "measure.bench.pace", "--feed", str(source), "--rates", str(rate)]
        feeder = subprocess.Popen(command, stdin=subprocess.PIPE)  # noqa: S603 - our own command
    handle = job.start(on_batch=lambda batch: seen.append((time.time(), batch)), trigger=trigger or None)
    handle.await_termination(WARM_UP)
    before, began = cpu_seconds() - _feeding(feeder), time.time()
    handle.await_termination(seconds)
    used, ended = cpu_seconds() - _feeding(feeder) - before, time.time()
    if feeder is not None and feeder.stdin is not None:
        feeder.stdin.close()
        feeder.wait()
    handle.stop()
    measured = [(at, batch) for at, batch in seen if began <= at <= ended]
    paused = sum(batch.pause for _, batch in measured)
    latencies = _latencies(source, measured)
    return Quiet(trigger, rate, ended - began, used, len(measured), paused, latencies)


def _latencies(source: Path, measured: Sequence[tuple[float, sp.BatchMetrics]]) -> list[float]:
    newest, there = completions(source)
    found = []
    for at, batch in measured:
        last = batch.latest_window
        if last is None:
            continue
        for back in range(batch.windows):
            first = bisect_left(newest, last["end"] / 1e6 - back)
            if first < len(newest):
                found.append(at - there[first])
    return found


def _feeding(feeder: subprocess.Popen[bytes] | None) -> float:
    if feeder is None:
        return 0.0
    fields = Path(f"/proc/{feeder.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / 100


def main() -> None:
    """Measure each trigger at each rate, in turn; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--feed", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rates", default="1,1000")
    parser.add_argument("--triggers", default="auto,0 seconds")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--quick", action="store_true", help="10 s each")
    arguments = parser.parse_args()
    rates = [float(rate) for rate in arguments.rates.split(",")]
    if arguments.feed is not None:
        feed(arguments.feed, rates[0])
        return
    found = []
    for rate in rates:
        for trigger in arguments.triggers.split(","):
            folder = Path(tempfile.mkdtemp(prefix="skypane-bench-"))
            found.append(run(trigger, rate, 10.0 if arguments.quick else arguments.seconds, folder))
            print(" | ".join(found[-1].line), flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    print(markdown_table(HEAD, [one.line for one in found]))


if __name__ == "__main__":
    main()
