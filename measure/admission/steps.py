"""A bound on latency that sets the number of readers: 40 growing files whose rates step x1, x7, x1, on Spark.

    python -m measure.admission.steps [--docs docs] [--step 30] [--runs planned one most]

The work of each row is to wait 20 ms for a service (service.py), so that eight readers are eight readers on any
machine. One reader processes 50 rows per second; x1 is half of that, and x7 needs four readers. With a bound of 5 s the
plan sets readers and workers (equations 1a and 1b); it is compared with one reader and with eight. A row is lifted by
the task that reads it.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from measure.admission.load import Feed, Load, files
from measure.elastic.runs import begun
from measure.elastic.service import SECONDS, Asked, service
from measure.tables import markdown_table, replace_between
from skypane.types import FloatArray

INPUTS: Final = 40
FACTORS: Final = (1, 7, 1)
RATE: Final = 0.5 / SECONDS
"""Rows a second at x1, of all inputs."""
MOST: Final = 8
SLIDE: Final = 2.0
BOUND: Final = 5.0
"""L, in seconds."""
LEAD: Final = 5.0
"""Seconds at x1 before what is measured begins."""
PATIENCE: Final = 150.0
"""Seconds until the first rows are answered: workers start, and kernels are compiled."""
RUNS: dict[str, dict[str, Any]] = {
    "planned": {
        "readers": sp.Readers(max_readers=MOST, latency=f"{BOUND:g} seconds"),
        "elastic": sp.Model(latency=f"{BOUND:g} seconds", max_workers=MOST + 1, max_wlq=1, every=1),
    },
    "one": {"readers": 1, "plq_workers": 1},
    "most": {"readers": MOST, "plq_workers": MOST},
}
TOLD = {"planned": "planned, L = 5 s", "one": "one reader", "most": f"{MOST} readers"}


@dataclass(frozen=True)
class Shown:
    """A run: of each batch how long it took in all and its readers, and of each window its latency, by when it ended.

    ends, latencies   seconds from the beginning to a window's end, and from there to its answer
    """

    lasted: FloatArray
    readers: FloatArray
    ends: FloatArray
    latencies: FloatArray
    unanswered: int

    @property
    def reader_seconds(self) -> float:
        return float(self.readers @ self.lasted)


def run(spark: SparkSession, folder: Path, port: int, step: float, readers: int | sp.Readers, **options: Any) -> Shown:
    """Ask for the skyline of the last seconds while the files grow, and let the last rows be answered."""
    (folder / "in").mkdir(parents=True)
    given = files(folder / "in", INPUTS, RATE)
    feeds = [Feed(one.name, one.rate, one.send, credit=at / INPUTS) for at, one in enumerate(given)]
    rows = sp.inputs(spark, [f"{folder}/in/*.jsonl"], "n long, at double", readers=readers)
    offers = rows.select(
        sf.hash("input", "n").cast("long").alias("id"),
        sf.timestamp_seconds("at").alias("ts"),
        (sf.pmod(sf.hash("input", "n"), sf.lit(1000)) / 1000).alias("price"),
        (sf.pmod(sf.hash("n", "input"), sf.lit(1000)) / 1000).alias("rating"),
    )
    seen: list[sp.BatchMetrics] = []
    job = sp.stream(
        offers, Asked(port), time="ts", window=f"{2 * SLIDE:g} seconds", slide=f"{SLIDE:g} seconds",
        progress=sp.Watermark("1 second"), checkpoint=folder / "checkpoint", output=folder / "out",
        workers=sp.WorkerOptions(wlq_workers=1, **options),
    )  # fmt: skip
    for feed in feeds:
        feed.send([b'{"n": -1, "at": %.3f}' % time.time()])
    handle = job.start(on_batch=seen.append)
    deadline = time.monotonic() + PATIENCE
    while not seen:
        if time.monotonic() > deadline:
            raise TimeoutError("the query does not start")
        time.sleep(0.1)
    seconds = LEAD + len(FACTORS) * step
    load = Load(feeds, factor=lambda share: FACTORS[max(0, int((share * seconds - LEAD) / step))])
    begin = time.time() + LEAD
    load.run(seconds)
    handle.stop(timeout=1)
    for batch in seen:
        print(f"{batch.started_at - begin:6.1f} s {batch}, {len(batch.task_rows)} readers", batch.workers, flush=True)
    return shown(seen, begin, begin + len(FACTORS) * step)


def shown(seen: Sequence[sp.BatchMetrics], begin: float, end: float) -> Shown:
    """Return what batches come to between two times; windows that were not answered by the end waited until then at least."""
    later = [batch for batch in seen if batch.started_at >= begin]
    starts = np.array([batch.started_at for batch in later])
    answered: dict[float, float] = {}
    for batch in seen:
        if batch.latest_window is not None:
            last = batch.latest_window["end"] / 1e6
            done = batch.started_at + batch.seconds["total"]
            answered |= {last - SLIDE * back: done for back in range(batch.windows)}
    first = np.ceil(begin / SLIDE) * SLIDE
    ends = np.arange(first, end - BOUND, SLIDE)
    waits = np.array([answered.get(close, end) - close for close in ends])
    return Shown(
        lasted=np.diff(np.append(starts, end)),
        readers=np.array([len(batch.task_rows) for batch in later], float),
        ends=ends - begin,
        latencies=waits,
        unanswered=sum(close not in answered for close in ends),
    )


def table(runs: dict[str, Shown], step: float) -> list[list[str]]:
    """Return a line for each run."""
    lines = []
    for name, one in runs.items():
        high = (one.ends > step) & (one.ends <= 2 * step)
        lines.append(
            [
                TOLD[name],
                f"{one.readers @ one.lasted / one.lasted.sum():.1f}",
                f"{one.reader_seconds:.0f}",
                *(f"{np.median(one.latencies[part]):.1f}" for part in (~high, high)),
                f"{np.percentile(one.latencies, 95):.1f}",
                f"{(one.latencies <= BOUND).mean():.0%}",
                str(one.unanswered),
            ]
        )
    return lines


def _bound(step: float) -> float:
    """Return the reader-seconds that the rates take at least, with whole readers that are never idle."""
    return sum(math.ceil(factor * RATE * SECONDS) for factor in FACTORS) * step


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all three, and tell what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--step", type=float, default=30.0)
    parser.add_argument("--runs", nargs="*", choices=list(RUNS), default=list(RUNS))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="skypane-steps-") as folder, service() as port:
        spark = begun(f"local[{MOST}]")
        runs = {name: run(spark, Path(folder) / name, port, given.step, **RUNS[name]) for name in given.runs}
        spark.stop()
    head = ("", "readers on average", f"reader-seconds ({_bound(given.step):.0f} at least)", "latency at x1, median (s)", f"at x{FACTORS[1]}", "95 % of all",
            "within 5 s", "not answered at the end")  # fmt: skip
    told = f"Steps of {given.step:g} s, load of the machine {os.getloadavg()[2]:.1f}."
    text = f"{markdown_table(head, table(runs, given.step))}\n\n{told}"
    print(text)
    if given.docs is not None:
        replace_between(given.docs / "admission.md", "steps", text)


if __name__ == "__main__":
    main()
