"""Aggregates by key over sliding windows, beside Spark's own window(), in one process and in turn.

    python -m measure.bench.keyed_windows [folder] [dataframe] [stream] [hop] [--rounds N] [--slides SLIDE ...] [--quick]

folder      the answers of a batch query in a folder of parquet files: workers write ours, Spark's tasks its own
dataframe   the answers as a DataFrame, which is written nowhere
stream      eight micro-batches into a folder of parquet files, of which the first two are not counted
hop         what the way of answers from Python to Java costs, by the form in which they are sent

The rows, the query and the windows are those of measure.bench.aggregates. Every way runs once before it is measured,
stream excepted. The answers of both sides in a folder are compared once, window by window. Seconds are medians; on a
machine with other users the CPU seconds of all processes are the better measure.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from measure.bench.aggregates import PARTITIONS, QUERY, WARM, WINDOW, Case, identity, native, ours
from measure.bench.cached_rows import cached_rows
from measure.bench.many_keys import native_stream, stream
from measure.processes import cpu_seconds
from measure.results.record import Found, Table
from skypane.plan import Plan
from skypane.runtime.spark import batch
from skypane.runtime.spark.spark_schema import arrow_schema
from skypane.types import micros

PAGE: Final = "bench-aggregates.md"
KINDS: Final = ("folder", "dataframe", "stream", "hop")
SLIDES: Final = ("1 minute", "36 seconds")
ROWS, KEYS = 1_000_000, 16_384
ANSWERS: Final = 2_900_000
"""Rows of the answers that the hop is measured with."""

Way = Callable[[DataFrame, Case, Path], object]
Figures = tuple[float, float]
"""Wall and CPU seconds."""


def native_files(rows: DataFrame, case: Case, out: Path) -> None:
    """Spark's own, in files."""
    flat = native(rows, case).selectExpr("w.start AS window_start", "w.end AS window_end", "key", "n", "mean", "most")
    flat.write.mode("overwrite").parquet(str(out))


def our_files(rows: DataFrame, case: Case, out: Path) -> None:
    """Ours, in files that workers write."""
    sp.ask(rows, QUERY, time="at", window=WINDOW, slide=case.slide, output=out, if_exists="overwrite")


def our_files_by_spark(rows: DataFrame, case: Case, out: Path) -> None:
    """Ours, in files that Spark writes."""
    ours(rows, case).write.mode("overwrite").parquet(str(out))


def ours_shared(rows: DataFrame, case: Case) -> DataFrame:
    """Ours, with tasks of the last stage that share the keys of a run, as they do for a folder."""
    return batch.windowed(rows, arrow_schema(rows), Plan(QUERY, case.windows, "at"), "error", shared=True).answers


def nowhere(answers: Callable[[DataFrame, Case], DataFrame]) -> Way:
    """Return a way whose rows are written nowhere."""

    def write(rows: DataFrame, case: Case, out: Path) -> None:
        del out
        answers(rows, case).write.format("noop").mode("overwrite").save()

    return write


FOLDER: Final[dict[str, Way]] = {"native": native_files, "skypane": our_files, "skypane, by Spark": our_files_by_spark}
DATAFRAME: Final[dict[str, Way]] = {
    "native": nowhere(native),
    "skypane": nowhere(ours),
    "skypane, keys shared": nowhere(ours_shared),
    "identity": nowhere(identity),
}


def in_turn(spark: SparkSession, case: Case, ways: dict[str, Way], rounds: int, folder: Path) -> dict[str, Figures]:
    """Return the median seconds of each way; each begins with a small run, as workers end when they have nothing to do."""
    frame = cached_rows(spark, case.table(), PARTITIONS)
    taken: dict[str, list[Figures]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, found in taken.items():
            out = folder / way.replace(", ", "-").replace(" ", "-")
            ways[way](frame.limit(WARM), case, out)
            cpu, began = cpu_seconds(), time.perf_counter()
            ways[way](frame, case, out)
            if number:
                found.append((time.perf_counter() - began, cpu_seconds() - cpu))
    frame.unpersist()
    return {way: medians(found) for way, found in taken.items()}


def medians(found: list[Figures]) -> Figures:
    """Return the median wall and CPU seconds."""
    wall, cpu = (statistics.median(each) for each in zip(*found, strict=True))
    return wall, cpu


def sums(folder: Path) -> pa.Table:
    """Return rows, counts and values of each window in a folder, in order."""
    rows = ds.dataset(folder, format="parquet").to_table()
    starts = rows["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    rows = rows.set_column(rows.schema.get_field_index("window_start"), "window_start", starts)
    of_each = rows.group_by("window_start").aggregate([("key", "sum"), ("n", "sum"), ("mean", "sum"), ("most", "sum")])
    return of_each.sort_by("window_start")


def check(one: Path, other: Path) -> int:
    """Raise AssertionError unless two folders have the same answers; return how many there are."""
    found, wanted = sums(one), sums(other)
    for name in ("window_start", "key_sum", "n_sum"):
        assert found[name].to_pylist() == wanted[name].to_pylist()
    for name in ("mean_sum", "most_sum"):
        assert np.allclose(found[name].to_numpy(), wanted[name].to_numpy(), rtol=1e-9)
    return int(ds.dataset(one, format="parquet").count_rows())


def compared(spark: SparkSession, case: Case, ways: dict[str, Way], rounds: int) -> list[str]:
    """Return a line: the seconds of each way, and how much faster ours is than Spark's own."""
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as name:
        taken = in_turn(spark, case, ways, rounds, Path(name))
        answers = f"{check(Path(name) / 'skypane', Path(name) / 'native'):,}" if ways is FOLDER else ""
    faster = [f"{taken['native'][kind] / taken['skypane'][kind]:.1f}" for kind in (0, 1)]
    seconds = [f"{wall:.2f} / {cpu:.2f}" for wall, cpu in taken.values()]
    return [f"{case.rows:,}", case.named, f"{case.windows.overlap}", *([answers] if answers else []), *seconds, *faster]


def streamed(spark: SparkSession, case: Case, rounds: int) -> list[str]:
    """Return a line: rows per second of both streams, medians of runs in turn, and where ours has answered windows."""
    both = {"native": native_stream, "skypane": stream}
    lines: dict[str, list[list[str]]] = {name: [] for name in both}
    for _ in range(rounds):
        for name, run in both.items():
            lines[name].append(run(spark, case, 1))
    rates = {name: statistics.median(float(line[4].replace(",", "")) for line in of) for name, of in lines.items()}
    where = ", ".join(sorted({place for line in lines["skypane"] for place in line[5].split(", ")}))
    each = [f"{rate:,.0f}" for rate in rates.values()]
    head = [f"{case.rows:,}", case.named, f"{case.windows.overlap}"]
    return [*head, *each, where, f"{rates['skypane'] / rates['native']:.1f}"]


def sent(spark: SparkSession, most: int, tasks: int = 1, *, end: str = "sent") -> DataFrame:
    """Return rows like answers that Python sends to Java in batches of `most` rows; `end` is that of the windows.

    end   "sent", or "derived" by Spark from the start, or "left out"
    """
    each = -(-ANSWERS // tasks)
    names = ["window_start", *(["window_end"] if end == "sent" else []), "key", "n", "mean", "most"]
    kinds = {"window_start": "timestamp", "window_end": "timestamp", "mean": "double", "most": "double"}
    schema = ", ".join(f"{name} {kinds.get(name, 'bigint')}" for name in names)

    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            numbers = np.arange(each)
            moments = pa.array(numbers, pa.timestamp("us", "UTC"))
            columns = {"key": numbers, "n": numbers, "mean": numbers / 3, "most": numbers / 7}
            yield from pa.table({name: columns.get(name, moments) for name in names}).to_batches(most)

    rows = spark.range(0, tasks, 1, tasks).mapInArrow(made, schema)
    if end != "derived":
        return rows
    moved = sf.timestamp_micros(sf.unix_micros("window_start") + sf.lit(micros(WINDOW)))
    return rows.select("window_start", moved.alias("window_end"), "key", "n", "mean", "most")


HOPS: Final[dict[str, Callable[[SparkSession], DataFrame]]] = {
    "one task, 16,384 rows a batch": lambda spark: sent(spark, 16_384),
    "one task, 1,024 rows a batch": lambda spark: sent(spark, 1_024),
    "one task, 65,536 rows a batch": lambda spark: sent(spark, 65_536),
    "one task, 262,144 rows a batch": lambda spark: sent(spark, 262_144),
    "one task, 65,536 rows a batch, window_end derived by Spark": lambda spark: sent(spark, 65_536, end="derived"),
    "one task, 65,536 rows a batch, no window_end": lambda spark: sent(spark, 65_536, end="left out"),
    "two tasks, 65,536 rows a batch": lambda spark: sent(spark, 65_536, 2),
}


def hops(spark: SparkSession, rounds: int) -> list[list[str]]:
    """Return a line for each form: seconds, medians of runs in turn, and wall seconds of those of the first."""
    taken: dict[str, list[Figures]] = {form: [] for form in HOPS}
    for number in range(rounds + 1):
        for form, found in taken.items():
            cpu, began = cpu_seconds(), time.perf_counter()
            HOPS[form](spark).write.format("noop").mode("overwrite").save()
            if number:
                found.append((time.perf_counter() - began, cpu_seconds() - cpu))
    figures = {form: medians(found) for form, found in taken.items()}
    first = next(iter(figures.values()))
    return [
        [
            form,
            f"{wall:.2f}",
            f"{cpu:.2f}",
            *(f"{now / then:.2f}" for now, then in zip((wall, cpu), first, strict=True)),
        ]
        for form, (wall, cpu) in figures.items()
    ]


HEADS: Final[dict[str, list[str]]] = {
    "folder": [
        "rows",
        "keys",
        "w/s",
        "answers",
        *(f"{way}, s wall / CPU" for way in FOLDER),
        "times faster, wall",
        "CPU",
    ],
    "dataframe": ["rows", "keys", "w/s", *(f"{way}, s wall / CPU" for way in DATAFRAME), "times faster, wall", "CPU"],
    "stream": ["rows", "keys", "w/s", "native, rows/s", "skypane, rows/s", "answered by", "times faster"],
    "hop": ["form", "s wall", "s CPU", "of the first, wall", "CPU"],
}


def lines_of(kind: str, spark: SparkSession, cases: list[Case], rounds: int) -> Iterator[list[str]]:
    """Yield the lines of a table as they are measured."""
    if kind == "hop":
        yield from hops(spark, rounds)
        return
    for case in cases:
        if kind == "stream":
            yield streamed(spark, case, rounds)
        else:
            yield compared(spark, case, FOLDER if kind == "folder" else DATAFRAME, rounds)


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return a table of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slides", nargs="+", default=list(SLIDES))
    parser.add_argument("--quick", action="store_true", help="few rows")
    arguments = parser.parse_args(argv)
    kinds = arguments.kinds or list(KINDS)
    if unknown := sorted(set(kinds) - set(KINDS)):
        parser.error(f"unknown {unknown[0]}: {', '.join(KINDS)}")
    rows, keys = (20_000, 1_000) if arguments.quick else (ROWS, KEYS)
    cases = [Case(rows, keys, slide) for slide in arguments.slides]
    conf = {"spark.driver.memory": "6g", "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    spark = sp.session("local[2]", "skypane-bench", conf)
    tables = []
    for kind in kinds:
        lines = []
        for line in lines_of(kind, spark, cases, arguments.rounds):
            lines.append(line)
            print(kind, *line, sep=" | ", flush=True)
        tables.append(Table(PAGE, f"keyed windows, {kind}", HEADS[kind], lines))
    return [*tables]


if __name__ == "__main__":
    main()
