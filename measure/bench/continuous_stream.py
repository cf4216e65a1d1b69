"""The continuous skyline as a stream on Spark, compared with an identity pipeline, and the placement of its front.

    python -m measure.bench.continuous_stream [--quick]

All pipelines run on local[2] over the same parquet files, one file per micro-batch, in turn, as in
measure.bench.streaming. Points have five criteria, arrive up to 0.2 s out of order, 100,000 per second of event time,
and the window is 10 s.

  stream    rows per second, compared with the source and with one Python stage; the maximum number of batches from the
            punctuation to an update; the driver's memory after the first batches and at the end
  place     seconds that a front takes for the rows of a batch, whole in the driver and in two shards on workers, by the
            number of stored points, and the decision of the placement policy
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skypane as sp
from measure.bench.streaming import WARM_UP, Case, Pipeline, Progress, measure, stream, unmeasured
from measure.results.record import Found, Table
from skypane.control.costs import Costs
from skypane.control.placement import DueRows, place_rows
from skypane.runtime.spark.arrow_batches import ROWS, ArrowBatches
from skypane.runtime.spark.calibration import costs_of
from skypane_papers.farms import DRAWS

RATE: Final = 100_000
SECOND: Final = 1_000_000
LATE: Final = 200_000
D: Final = 5
WINDOWS: Final = (2, 10, 30, 60, 120)


@dataclass(frozen=True)
class Points(Case):
    """`batches` micro-batches of `rows` points of a distribution."""

    kind: str = "independent"

    def write(self, folder: Path) -> None:
        """Write the stream, one file a micro-batch."""
        folder.mkdir(parents=True)
        rng = np.random.default_rng(7)
        for batch in range(self.batches):
            arrival = (batch * self.rows + np.arange(self.rows)) * SECOND // RATE
            times = arrival - rng.integers(0, LATE, self.rows)
            points = DRAWS[self.kind](self.rows, self.criteria, rng)
            columns: dict[str, object] = {"time": pa.array(times, pa.timestamp("us", "UTC"))}
            columns |= {name: points[:, j] for j, name in enumerate(self.columns())}
            group = max(self.rows // 8, 1)
            pq.write_table(pa.table(columns), folder / f"{batch:05d}.parquet", row_group_size=group, compression="none")


def front(
    spark: SparkSession,
    case: Case,
    folder: Path,
    scratch: Path,
    *,
    window: int,
    seen: list[sp.BatchMetrics],
    place: str = "",
) -> str:
    """Run the query; note the metrics of its batches in `seen`. `place` says where the front is compared, "" if it may choose."""
    job = sp.continuous_skyline(
        stream(spark, folder),
        sp.from_sense(case.columns(), ["min"] * case.criteria),
        time="time",
        window=f"{window} seconds",
        progress=sp.KSlack(),
        checkpoint=scratch / "checkpoint",
        output=scratch / "out",
    )
    forced = {"driver": Costs(job=1e9, shard_threads=1e9), "spark": Costs(job=0, shard_per_row=0, front_per_pair=1)}
    if place:
        job = replace(job, settings=replace(job.settings, costs=forced[place]))
    handle = job.start(trigger="available now", on_batch=seen.append)
    handle.await_termination()
    return str(handle.query.id)


def streams(spark: SparkSession, listener: Progress, kinds: Iterable[str], *, quick: bool) -> list[list[str]]:
    """Return a line for each distribution: rows per second, updates, their latency, memory."""
    lines = []
    for kind in kinds:
        case = Points(1_000_000, D, WARM_UP + (3 if quick else 8), kind)
        seen: list[sp.BatchMetrics] = []
        pipelines: dict[str, Pipeline] = {"identity": unmeasured, "front": partial(front, window=10, seen=seen)}
        rates = measure(spark, listener, case, 1 if quick else 3, pipelines)
        last = seen[-case.batches :]
        updates = sum(m.front["adds"] + m.front["dels"] for m in last if m.front)
        lines.append([
            kind, f"{rates['identity']:,.0f}", f"{rates['front']:,.0f}", f"{rates['front'] / rates['identity']:.2f}",
            f"{statistics.median(m.front['stored'] for m in last if m.front):,.0f}", f"{updates / case.batches:,.0f}",
            f"{max(_behind(last))}", f"{statistics.median(m.seconds['wlq'] for m in last[WARM_UP:]) * 1e3:,.0f} ms",
        ])  # fmt: skip
        print(*lines[-1], sep="  ", flush=True)
    return lines


def _behind(seen: list[sp.BatchMetrics]) -> list[int]:
    """Return, for each punctuation, how many micro-batches later all updates before it have been told.

    Updates are told up to the end of the last whole span of a second before the punctuation, so that some wait for the
    next one.
    """
    passed = [metrics.punctuation or 0 for metrics in seen]
    told = [time // SECOND * SECOND for time in passed]
    later = ([n for n, until in enumerate(told[index:]) if until >= time] for index, time in enumerate(passed))
    return [batches[0] for batches in later if batches]


def memory(spark: SparkSession, *, quick: bool) -> list[list[str]]:
    """Return the driver's peak memory after more and more batches of one stream of a hundred thousand rows each."""
    case = Points(100_000, D, 12 if quick else 60)
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
        case.write(Path(temporary) / "stream")
        peaks: list[int] = []
        seen = _Noting(peaks)
        front(spark, case, Path(temporary) / "stream", Path(temporary) / "scratch", window=2, seen=seen)
    return [
        [f"{(at + 1) * case.rows:,}", f"{peaks[at] / 1024:,.0f} MiB"]
        for at in (len(peaks) // 4, len(peaks) // 2, len(peaks) - 1)
    ]


class _Noting(list[sp.BatchMetrics]):
    """A list that notes the peak memory of this process with each metric."""

    def __init__(self, peaks: list[int]) -> None:
        super().__init__()
        self._peaks = peaks

    def append(self, metrics: sp.BatchMetrics) -> None:
        super().append(metrics)
        self._peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def places(spark: SparkSession, *, quick: bool) -> list[list[str]]:
    """Return a line for each length of the window, of anticorrelated points: seconds a batch, here and there."""
    lines = []
    for window in WINDOWS[:2] if quick else WINDOWS:
        case = Points(1_000_000, D, 4 + window // 10, "anticorrelated")
        found: dict[str, tuple[float, float, float]] = {}
        with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
            case.write(Path(temporary) / "stream")
            for place in ("driver", "spark"):
                seen: list[sp.BatchMetrics] = []
                scratch = Path(temporary) / "scratch"
                front(spark, case, Path(temporary) / "stream", scratch, window=window, seen=seen, place=place)
                shutil.rmtree(scratch)
                full = [m for m in seen[-3:] if m.front]
                words = [_because(m).split() for m in full]
                found[place] = (
                    statistics.median(m.seconds["wlq"] for m in full),
                    statistics.median(float(word[0]) for word in words),
                    statistics.median(m.front["stored"] for m in full if m.front),
                )
        here, coming, stored = found["driver"]
        chosen = place_rows(DueRows(int(coming), int(stored), 2), costs_of(spark)).value.where
        lines.append(
            [f"{window} s", f"{stored:,.0f}", f"{coming:,.0f}", f"{here:.2f} s", f"{found['spark'][0]:.2f} s", chosen]
        )
        print(*lines[-1], sep="  ", flush=True)
    return lines


def _because(metrics: sp.BatchMetrics) -> str:
    decision = metrics.decision("placement")
    assert decision is not None, "each batch of a front has one"
    return decision.because


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few batches, one round")
    parser.add_argument("--only", choices=["stream", "memory", "place"], help="one of the tables")
    parser.add_argument(
        "--points", nargs="+", choices=[*DRAWS], default=[*DRAWS], help="distributions of the first table"
    )
    arguments = parser.parse_args(argv)
    spark = sp.session("local[2]", "skypane-bench")
    ArrowBatches(ROWS, measured=True).settle(spark)
    listener = Progress()
    spark.streams.addListener(listener)
    quick = arguments.quick
    tables: dict[str, tuple[list[str], Callable[[], list[list[str]]]]] = {
        "stream": (
            ["points", "identity, rows/s", "front, rows/s", "front : identity", "stored", "updates/batch",
             "batches behind", "front takes"],
            lambda: streams(spark, listener, arguments.points, quick=quick),
        ),
        "memory": (["rows so far", "driver's peak memory"], lambda: memory(spark, quick=quick)),
        "place": (
            ["window", "stored", "rows that come", "in the driver", "in two shards", "the policy says"],
            lambda: places(spark, quick=quick),
        ),
    }  # fmt: skip
    found: Found = []
    for name, (head, made) in tables.items():
        if arguments.only in (None, name):
            table = Table("bench-continuous.md", f"front-{name}", head, made())
            print(table.text, flush=True)
            found.append(table)
    return found


if __name__ == "__main__":
    main()
