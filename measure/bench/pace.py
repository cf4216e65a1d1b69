"""CPU seconds and latency of a stream that is not busy: files of new rows come at a steady rate, with the current time.

    python -m measure.bench.pace [--rates 1,1000] [--source files] [--seconds 60] [--triggers auto,"0 seconds"] [--polling MS]

Windows of 10 s end every second. Another process sends the rows, every 50 ms or one by one, over a socket or as files.
CPU seconds are those of driver, Java and workers after a warm-up of 20 s. The latency of a window is the time from the
first row at or after its end, when it is sent, to the commit of its answer.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from measure.processes import cpu_seconds
from measure.results.record import Found
from measure.tables import markdown_table

WARM_UP = 20.0
"""Seconds before the measurement."""
SENDINGS = 20
"""A second, at most; each has at least one row."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """What a stream took in the measured seconds.

    cpu        CPU seconds
    paused     seconds of pauses
    latencies  seconds from the row that completed a window to the commit of its answer
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


def feed(target: str, log: Path, rate: float) -> None:
    """Send rows at `rate` a second until standard input is closed; write the time of each row to `log`, too.

    target   a folder for files, or the port on which one reader is served
    """
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    send = _to_socket(int(target)) if target.isdecimal() else _to_files(Path(target))
    every = 1 / min(rate, SENDINGS)
    rows, rng, began, number = round(rate * every), np.random.default_rng(0), time.time(), 0
    with log.open("ab", buffering=0) as noted:
        while not ended.wait(max(0.0, began + (number + 1) * every - time.time())):
            number += 1
            end = began + number * every
            times = (np.linspace(end - every, end, rows, endpoint=False) + every / rows).astype(np.float64)
            send(
                pa.table({"ts": (times * 1e6).astype(np.int64), "price": rng.random(rows), "rating": rng.random(rows)})
            )
            noted.write(np.column_stack([times, np.full(rows, time.time())]).tobytes())


def _wait_for_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def _to_files(folder: Path) -> Callable[[pa.Table], None]:
    number = itertools.count()

    def send(rows: pa.Table) -> None:
        rows = rows.set_column(0, "ts", rows["ts"].cast(pa.timestamp("us", "UTC")))
        pq.write_table(rows, folder / ".draft")
        (folder / ".draft").rename(folder / f"{next(number):07d}.parquet")

    return send


def _to_socket(port: int) -> Callable[[pa.Table], None]:
    reader, _ = socket.create_server(("127.0.0.1", port)).accept()

    def send(rows: pa.Table) -> None:
        columns = (rows[name].to_pylist() for name in rows.column_names)
        reader.sendall("".join(f"{','.join(map(str, row))}\n" for row in zip(*columns, strict=True)).encode())

    return send


def _rows(spark: SparkSession, target: str) -> DataFrame:
    if not target.isdecimal():
        return spark.readStream.schema("ts timestamp, price double, rating double").parquet(target)
    lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", target).load()
    columns = ["timestamp_micros(bigint(split(value, ',')[0])) AS ts"]
    columns += [f"double(split(value, ',')[{at}]) AS {name}" for at, name in ((1, "price"), (2, "rating"))]
    return lines.selectExpr(*columns)


def run(trigger: str, rate: float, seconds: float, folder: Path, source: str) -> Quiet:
    """Measure one stream."""
    spark, log = sp.session("local[2]", "skypane-bench"), folder / "log"
    target = str(free_port()) if source == "socket" else str(folder / "in")
    (folder / "in").mkdir(parents=True)
    command = [sys.executable, "-m", "measure.bench.pace", "--feed", target, "--log", str(log), "--rates", str(rate)]
    feeder = subprocess.Popen(command, stdin=subprocess.PIPE)  # noqa: S603 - our own command
    if source == "socket":
        _wait_for_server(int(target))
    seen: list[tuple[float, sp.BatchMetrics]] = []
    handle = _job(_rows(spark, target), folder).start(
        on_batch=lambda batch: seen.append((time.time(), batch)), trigger=trigger
    )
    handle.await_termination(WARM_UP)
    before, began = cpu_seconds() - _feeding(feeder), time.time()
    handle.await_termination(seconds)
    used, ended = cpu_seconds() - _feeding(feeder) - before, time.time()
    handle.stop()
    if feeder.stdin is not None:
        feeder.stdin.close()
    feeder.wait()
    measured = [(at, batch) for at, batch in seen if began <= at <= ended]
    paused = sum(batch.pause for _, batch in measured)
    return Quiet(trigger, rate, ended - began, used, len(measured), paused, _latencies(log, measured))


def _job(rows: DataFrame, folder: Path) -> sp.Job:
    return sp.stream(
        rows,
        "price MIN, rating MAX",
        time="ts",
        window="10 seconds",
        slide="1 second",
        progress=sp.Watermark("0 seconds"),
        checkpoint=folder / "checkpoint",
        output=folder / "out",
    )


def _wait_for_server(port: int) -> None:
    """Return when somebody listens on the port; the connection must be the stream's, so none is made."""
    while f":{port:04X} " not in Path("/proc/net/tcp").read_text():
        time.sleep(0.05)


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _latencies(log: Path, measured: Sequence[tuple[float, sp.BatchMetrics]]) -> list[float]:
    """Return the seconds from the first row at or after the end of each window, as it was sent, to its commit."""
    times, sent = np.frombuffer(log.read_bytes(), np.float64).reshape(-1, 2).T
    found = []
    for at, batch in measured:
        if batch.latest_window is None:
            continue
        for back in range(batch.windows):
            first = int(np.searchsorted(times, batch.latest_window["end"] / 1e6 - back))
            if first < len(times):
                found.append(at - float(sent[first]))
    return found


def _feeding(feeder: subprocess.Popen[bytes]) -> float:
    """Return the CPU seconds of the process that sends the rows."""
    fields = Path(f"/proc/{feeder.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / 100


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure each trigger at each rate, in turn; print a table, which is on no page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--feed", help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--source", choices=["socket", "files"], default="socket")
    parser.add_argument("--rates", default="1,1000")
    parser.add_argument("--triggers", default="auto,0 seconds")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--polling", help="ms between two looks of Spark at a source without rows; 10 if it is not set")
    parser.add_argument("--quick", action="store_true", help="10 s each")
    arguments = parser.parse_args(argv)
    rates = [float(rate) for rate in arguments.rates.split(",")]
    if arguments.feed is not None:
        feed(arguments.feed, arguments.log, rates[0])
        return []
    if arguments.polling is not None:
        sp.session("local[2]", "skypane-bench").conf.set("spark.sql.streaming.pollingDelay", f"{arguments.polling}ms")
    found = []
    for rate in rates:
        for trigger in arguments.triggers.split(","):
            folder = Path(tempfile.mkdtemp(prefix="skypane-bench-"))
            seconds = 10.0 if arguments.quick else arguments.seconds
            found.append(run(trigger, rate, seconds, folder, arguments.source))
            print(" | ".join(found[-1].line), flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    print(markdown_table(HEAD, [one.line for one in found]))
    return []


if __name__ == "__main__":
    main()
