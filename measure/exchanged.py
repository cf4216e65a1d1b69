"""The chosen exchange of rows against the best fixed way in hindsight, and against rows that stay where they are read.

    python -m measure.exchanged [--docs docs] [--master "local-cluster[4,1,1024]"] [--rows 400000] [--rounds 2] [--pairs 4]
    python -m measure.exchanged --model [--docs docs]

Streams of batches of equal size, whose source has 1, 2 or 8 partitions, for skylines of 2 to 12 criteria. Panes are
uniform (a batch has five, of equal size) or one-hot (a batch has one, with all rows). The ways run in turn, repeatedly, so
that other load on the machine affects all alike; then only the chosen way and rows that stay, in pairs, because their
ratio is the closest. Figures are medians over the batches after an exchange is confirmed. The first stream runs once
more before all others, uncounted: Java compiles what all of them run.

With --docs the table keeps the lines of streams that are not measured this time.

`--model` needs no Spark: it prints what the costs of the machine predict, by the seconds that a row takes to be lifted.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skypane as sp
from measure.bursty import CHOSEN, ROUTED, WAYS, run, source
from measure.tables import lines_of, markdown_table, replace_between, text_between
from skypane.control.costs import DEFAULT_COSTS
from skypane.control.exchange import AS_READ, CONFIRM, PROBE_EVERY
from skypane.control.measurements import BatchMeasurements, PaneWork, TaskWork
from skypane.control.parallelism import Workers
from skypane.runtime.sim.cost_models import INDEPENDENT_8D
from skypane.runtime.spark.engine.control_loop import BatchDecisions, ControlLoop

SHAPES = {"uniform": 5, "one-hot": 1}
"""Panes of a batch, of 0.2 s each; the rest of its second has no rows."""
PANE = 200_000
SECOND = 1_000_000
PARTITIONS = (1, 2, 8)
CRITERIA = (2, 4, 8, 12)
FIXED = (*ROUTED, AS_READ)
ROW_SECONDS = (0.3e-6, 1e-6, 3e-6, 10e-6)
"""Seconds to lift a row, for the model."""


@dataclass(frozen=True)
class Stream:
    """A stream of `batches` batches of `rows` rows, in `partitions` files each, with `panes` panes in each batch."""

    partitions: int
    panes: int
    criteria: int
    rows: int
    batches: int

    @property
    def names(self) -> list[str]:
        return [f"c{at}" for at in range(self.criteria)]

    def write(self, folder: Path) -> None:
        """Write the files, those of a batch one after the other."""
        folder.mkdir(parents=True)
        rng = np.random.default_rng(7)
        for batch in range(self.batches):
            times = np.sort(rng.integers(0, self.panes * PANE, self.rows)) + SECOND * batch
            for part in range(self.partitions):
                own = times[part :: self.partitions]
                columns: dict[str, object] = {"time": pa.array(own, pa.timestamp("us", "UTC"))}
                columns |= {name: rng.random(len(own)) for name in self.names}
                pq.write_table(pa.table(columns), folder / f"{batch:05d}-{part}.parquet", compression="none")


def seconds(told: list[sp.BatchMetrics]) -> float:
    """Return the median seconds of batches."""
    return statistics.median(batch.seconds["total"] for batch in told)


def measured(spark: SparkSession, stream: Stream, rounds: int, pairs: int) -> list[str]:
    """Return the seconds of each way, the way that the stream chose most often, and its seconds over the others'."""
    workers = spark.sparkContext.defaultParallelism
    with tempfile.TemporaryDirectory(prefix="skypane-exchanged-") as temporary:
        folder, scratch = Path(temporary) / "stream", Path(temporary) / "scratch"
        stream.write(folder)
        told: dict[str, list[sp.BatchMetrics]] = {way: [] for way in WAYS}
        for way in (*WAYS * rounds, *(AS_READ, CHOSEN) * pairs):
            rows = source(spark, folder, stream.partitions)
            told[way] += run(rows, way, scratch, workers, stream.names)[CONFIRM + 1 :]
            shutil.rmtree(scratch, ignore_errors=True)
    taken = {way: seconds(batches) for way, batches in told.items()}
    (chosen, _), *_ = Counter(batch.splitting for batch in told[CHOSEN]).most_common(1)
    best = min(taken[way] for way in FIXED)
    ratios = (f"{taken[CHOSEN] / best:.2f}", f"{taken[CHOSEN] / taken[AS_READ]:.2f}")
    return [*(f"{taken[way]:.2f}" for way in (*FIXED, CHOSEN)), chosen, *ratios]


def decided(stream: Stream, workers: int, row_seconds: float) -> BatchDecisions:
    """Return the decisions by the default costs once batches have shown an even source whose panes it all divides."""
    control = ControlLoop(None, Workers(workers, workers))
    state = control.init()
    each = stream.rows // stream.panes // stream.partitions
    left = stream.panes * stream.partitions * float(INDEPENDENT_8D.of(each))
    merge = stream.panes * DEFAULT_COSTS.window + left * DEFAULT_COSTS.window_per_row
    for batch in range(CONFIRM):
        panes = tuple(PaneWork(5 * batch + at, each, each * row_seconds) for at in range(stream.panes))
        task = TaskWork(stream.panes * each, stream.panes * each * row_seconds, panes)
        state, _ = control.decide(state)
        state = control.observe(
            state, BatchMeasurements((task,) * stream.partitions, merge, 10.0, exchanged=False, lift_seconds=0.0)
        )
    return control.decide(state)[1]


def predicted(partitions: int, workers: int, rows: int) -> list[list[str]]:
    """Return a line for each shape: the way that is chosen at each cost of a row, and as read over its seconds."""
    lines = []
    for shape, panes in SHAPES.items():
        cells = []
        for row_seconds in ROW_SECONDS:
            decisions = decided(Stream(partitions, panes, 8, rows, CONFIRM), workers, row_seconds)
            chosen, figures = decisions.splitting.value, decisions.exchange.figures
            cells.append(chosen if chosen == AS_READ else f"{chosen} {figures[AS_READ] / figures[chosen]:.1f}x")
        lines.append([str(workers), f"{rows:,}", str(partitions), shape, *cells])
    return lines


def model() -> str:
    """Return the table of what the default costs predict."""
    lines = [
        line
        for workers in (4, 16)
        for rows in (100_000, 1_000_000)
        for partitions in PARTITIONS
        for line in predicted(partitions, workers, rows)
    ]
    heads = ["workers", "rows", "source partitions", "panes", *(f"{cost * 1e6:.1f} us a row" for cost in ROW_SECONDS)]
    return markdown_table(heads, lines)


def main() -> None:
    """Measure, print, and record the table where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--master", default="local-cluster[4,1,1024]")
    parser.add_argument("--partitions", type=int, nargs="+", default=PARTITIONS)
    parser.add_argument("--criteria", type=int, nargs="+", default=CRITERIA)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=4)
    arguments = parser.parse_args()
    if not arguments.model and not CONFIRM + 1 < arguments.batches <= PROBE_EVERY:
        parser.error(f"need {CONFIRM + 2} to {PROBE_EVERY} batches, so that an exchange is confirmed and not probed")
    name = "exchange model" if arguments.model else f"exchange {arguments.master}"
    document = None if arguments.docs is None else arguments.docs / "control.md"
    known = lines_of(text_between(document, name)) if document and not arguments.model else []
    table = model() if arguments.model else markdown_table(HEAD, by_stream(known, measure(arguments)))
    print(table)
    if document:
        replace_between(document, name, table)


HEAD = ("source partitions", "panes", "d", *FIXED, "chosen", "mostly", "over the best", "over as read")


def by_stream(known: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return the lines in the order of their streams; of a stream that is in both, the line that was found."""
    lines = {(int(line[0]), list(SHAPES).index(line[1]), int(line[2])): line for line in (*known, *found)}
    return [lines[stream] for stream in sorted(lines)]


def measure(arguments: argparse.Namespace) -> list[list[str]]:
    """Return the lines of the streams."""
    # Each file is a partition of its own, even if it is small.
    spark = sp.session(arguments.master, "skypane-exchanged", {"spark.sql.files.openCostInBytes": str(128 << 20)})
    streams = [
        (shape, Stream(partitions, panes, criteria, arguments.rows, arguments.batches))
        for partitions in arguments.partitions
        for shape, panes in SHAPES.items()
        for criteria in arguments.criteria
    ]
    measured(spark, streams[0][1], 1, 0)
    lines = []
    for shape, stream in streams:
        cells = measured(spark, stream, arguments.rounds, arguments.pairs)
        lines.append([str(stream.partitions), shape, str(stream.criteria), *cells])
        print(" ".join(lines[-1]), flush=True)
    spark.stop()
    return lines


if __name__ == "__main__":
    main()
