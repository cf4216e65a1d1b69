"""Rows per second that the streaming engine sustains, compared with pipelines that do less.

    python -m measure.bench.streaming [--quick]

All pipelines run on local[2] over the same parquet files, one file per micro-batch, in turn, so that other load on the
machine affects all alike. The query is paper 1's: a skyline over windows of 1 s, every 0.2 s, 10,000 tuples per pane,
independent criteria, tuples up to 0.2 s out of order.

  scan       the source alone, to Spark's no-op sink, without Python
  identity   the source, a map stage that passes Arrow batches through, the no-op sink: one Python stage
  unmeasured the same, where Spark does not add up the bytes of a batch after every row, as in the engine
  engine     the skyline of every window, exactly once, into a folder of parquet files

Rows per second are those of whole micro-batches as Spark reports them (planning, logs and commits included), without
the first two of each query.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryListener

import skypane as sp
from measure.results.record import Found, Table
from skypane.operators.query import Query
from skypane.operators.stay_columns import WINDOWS, AnswerForm
from skypane.runtime.spark.arrow_batches import BYTES, RECORDS, ROWS, ArrowBatches

PANE_ROWS = 10_000
PANE_MICROS = 200_000
DISORDER_MICROS = 200_000
WARM_UP = 2


@dataclass(frozen=True)
class Case:
    """`batches` micro-batches of `rows` rows with `criteria` criteria, and a column of keys for each number of groups."""

    rows: int
    criteria: int
    batches: int
    groups: tuple[int, ...] = field(default=(), kw_only=True)

    def columns(self) -> list[str]:
        return [f"c{index}" for index in range(self.criteria)]

    def preference(self) -> sp.Preference:
        """Return that of the query: less is better, of all criteria."""
        return sp.from_sense(self.columns(), ["min"] * self.criteria)

    def write(self, folder: Path) -> None:
        """Write the stream, one file a micro-batch."""
        folder.mkdir(parents=True)
        rng = np.random.default_rng(self.criteria)
        span = self.rows * PANE_MICROS // PANE_ROWS
        for batch in range(self.batches):
            arrival = np.sort(rng.integers(batch * span, (batch + 1) * span, self.rows))
            times = arrival - rng.integers(0, DISORDER_MICROS, self.rows)
            columns: dict[str, object] = {"time": pa.array(times, pa.timestamp("us", "UTC"))}
            columns |= {name: rng.random(self.rows) for name in self.columns()}
            columns |= {f"g{count}": rng.integers(0, count, self.rows) for count in self.groups}
            # Several row groups allow Spark to divide the file into two equal tasks.
            group = max(self.rows // 8, 1)
            pq.write_table(pa.table(columns), folder / f"{batch:05d}.parquet", row_group_size=group, compression="none")


class Progress(StreamingQueryListener):
    """Rows and milliseconds of each micro-batch, by query."""

    def __init__(self) -> None:
        self.batches: dict[str, list[tuple[int, int]]] = {}

    def onQueryStarted(self, event: object) -> None:
        """Nothing to note."""

    def onQueryIdle(self, event: object) -> None:
        """Nothing to note."""

    def onQueryTerminated(self, event: object) -> None:
        """Nothing to note."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if progress.numInputRows:
            entry = (progress.numInputRows, progress.batchDuration)
            self.batches.setdefault(str(progress.id), []).append(entry)

    def rate(self, query: str, batches: int) -> float:
        """Return rows per second of a query's batches after the warm-up; waits until all have been told of."""
        deadline = time.monotonic() + 30
        while len(self.batches.get(query, ())) < batches and time.monotonic() < deadline:
            time.sleep(0.05)
        steady = self.batches[query][WARM_UP:]
        return sum(rows for rows, _ in steady) / sum(millis for _, millis in steady) * 1_000


def _passed_through(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the stream of the files in `folder`, one file a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def noop(rows: DataFrame, scratch: Path) -> str:
    """Run a stream into Spark's no-op sink; return the query's id."""
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(scratch / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return str(query.id)


def scan(spark: SparkSession, case: Case, folder: Path, scratch: Path) -> str:
    """Run the source alone."""
    del case
    return noop(stream(spark, folder), scratch)


def identity(spark: SparkSession, case: Case, folder: Path, scratch: Path) -> str:
    """Run the source and one hop through Python."""
    del case
    rows = stream(spark, folder)
    return noop(rows.mapInArrow(_passed_through, rows.schema), scratch)


def unmeasured(spark: SparkSession, case: Case, folder: Path, scratch: Path) -> str:
    """Run identity with the engine's Arrow batches."""
    with without_sums(spark):
        return identity(spark, case, folder, scratch)


@contextmanager
def without_sums(spark: SparkSession) -> Iterator[None]:
    """Let Spark send Arrow batches as the engine does, without adding up their bytes after each row."""
    before = {name: spark.conf.get(name) for name in (RECORDS, BYTES)}
    ArrowBatches(ROWS, measured=False).settle(spark)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def engine(
    spark: SparkSession,
    case: Case,
    folder: Path,
    scratch: Path,
    *,
    window: str = "1 second",
    slide: str = "200 milliseconds",
    by: Sequence[str] = (),
    counted: bool = False,
) -> str:
    """Run the query; `counted`: the rows of its answers are made and counted, and only their numbers written."""
    query = (Counted if counted else sp.Skyline)(case.preference(), by)
    return answered(stream(spark, folder), query, scratch, window=window, slide=slide)


def answered(
    rows: DataFrame,
    query: Query,
    scratch: Path,
    *,
    window: str = "1 second",
    slide: str = "200 milliseconds",
    answers: AnswerForm = WINDOWS,
) -> str:
    """Run a query over all rows of a stream; return its id."""
    job = sp.stream(
        rows,
        query,
        time="time",
        window=window,
        slide=slide,
        answers=answers,
        progress=sp.KSlack(),
        checkpoint=str(scratch / "checkpoint"),
        output=str(scratch / "out"),
    )
    handle = job.start(trigger="available now")
    handle.await_termination()
    return str(handle.query.id)


class Counted(sp.Skyline):
    """A skyline that tells how many rows it has."""

    def lower(self, partial: pa.Table) -> pa.Table:
        return pa.table({"rows": [partial.num_rows]})

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        del schema
        return pa.schema([("rows", pa.int64())])


Pipeline = Callable[[SparkSession, Case, Path, Path], str]

PIPELINES: dict[str, Pipeline] = {
    "scan": scan,
    "identity": identity,
    "unmeasured": unmeasured,
    "engine": engine,
}


HEAD: Sequence[str] = (
    "rows/batch",
    "criteria",
    *(f"{name}, rows/s" for name in PIPELINES),
    "engine : identity",
    "engine : unmeasured",
)


def measure(
    spark: SparkSession, listener: Progress, case: Case, rounds: int, pipelines: Mapping[str, Pipeline] = PIPELINES
) -> dict[str, float]:
    """Return the median rows per second of each pipeline, run in turn `rounds` times."""
    found = rates_of(spark, listener, case, rounds, pipelines)
    return {name: statistics.median(values) for name, values in found.items()}


def rates_of(
    spark: SparkSession, listener: Progress, case: Case, rounds: int, pipelines: Mapping[str, Pipeline] = PIPELINES
) -> dict[str, list[float]]:
    """Return the rows per second of each round of each pipeline, run in turn."""
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
        folder = Path(temporary) / "stream"
        case.write(folder)
        rates: dict[str, list[float]] = {name: [] for name in pipelines}
        for _ in range(rounds):
            for name, run in pipelines.items():
                scratch = Path(temporary) / "scratch"
                rates[name].append(listener.rate(run(spark, case, folder, scratch), case.batches))
                shutil.rmtree(scratch, ignore_errors=True)
        return rates


def listened(listener: Progress | None = None) -> tuple[SparkSession, Progress]:
    """Return a session whose Arrow batches are as large as the engine's, and what listens to its streams."""
    spark = sp.session("local[2]", "skypane-bench")
    ArrowBatches(ROWS, measured=True).settle(spark)
    listener = listener or Progress()
    spark.streams.addListener(listener)
    return spark, listener


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small cases, one round")
    parser.add_argument("--criteria", type=int, nargs="+", default=[4, 6, 8, 10, 12])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    spark, listener = listened()
    cases = [
        Case(rows, criteria, WARM_UP + (4 if rows > 500_000 else 12))
        for rows in arguments.rows
        for criteria in arguments.criteria
    ]
    if arguments.quick:
        cases = [Case(100_000, 4, WARM_UP + 3), Case(100_000, 8, WARM_UP + 3)]
    lines = []
    for case in cases:
        rates = measure(spark, listener, case, 1 if arguments.quick else arguments.rounds)
        lines.append(_line(case, rates))
        print(lines[-1], flush=True)
    table = Table("bench-streaming.md", "streaming", HEAD, lines)
    print(table.text)
    return [table]


def _line(case: Case, rates: dict[str, float]) -> list[str]:
    ratios = (f"{rates['engine'] / rates[name]:.2f}" for name in ("identity", "unmeasured"))
    return [f"{case.rows:,}", str(case.criteria), *(f"{rate:,.0f}" for rate in rates.values()), *ratios]


if __name__ == "__main__":
    main()
