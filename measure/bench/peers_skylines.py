"""Skylines of windows by group, as a stream, by skypane and by WindFlow.

    python -m measure.bench.peers_skylines [--quick] [--criteria 4 8]

The query is the skyline of each of 16 groups over windows of a second, every 0.2 s, of 100,000 rows a second of event time with
independent criteria, which arrive up to 0.2 s out of order. skypane reads files, one a micro-batch, of two sizes; WindFlow
reads a row at a time. Both write all answers, which must be equal, in turn.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skypane as sp
from measure.bench.turns import Way, compared
from measure.peers import windflow
from measure.peers.commands import timed
from measure.results.record import Comparison, Found, Times

SECOND: Final = 1_000_000
LENGTH, SLIDE, LATE = SECOND, SECOND // 5, SECOND // 5
WINDOW, EVERY, DELAY = "1 second", "200 milliseconds", "200 milliseconds"
BEGIN: Final = 1_767_225_600 * SECOND
"""2026 in microseconds, at a whole second."""
GROUPS: Final = 16
RATE: Final = 100_000
OTHERS: Final = "WindFlow"


@dataclass(frozen=True)
class Case:
    """So many rows of so many criteria, in micro-batches of these sizes."""

    rows: int
    criteria: int
    batches: tuple[int, ...] = (500_000, 100_000)

    @property
    def names(self) -> list[str]:
        """The columns of the criteria."""
        return [f"c{index}" for index in range(self.criteria)]

    def table(self) -> pa.Table:
        """Return the rows in the order of arrival."""
        rng = np.random.default_rng(self.criteria)
        times = np.arange(self.rows) * SECOND // RATE
        times = times[np.argsort(times + rng.integers(0, LATE, self.rows), kind="stable")] + BEGIN
        columns: dict[str, object] = {"at": pa.array(times, pa.timestamp("us", "UTC"))}
        columns["g"] = rng.integers(0, GROUPS, self.rows)
        return pa.table(columns | {name: rng.random(self.rows) for name in self.names})


def write(case: Case, folder: Path) -> None:
    """Write the rows: a folder of parquet files for each size of a micro-batch, and records for C++."""
    table = case.table()
    for size in case.batches:
        (folder / str(size)).mkdir(parents=True)
        for number, begin in enumerate(range(0, case.rows, size)):
            file = folder / str(size) / f"{number:05d}.parquet"
            # Several row groups allow Spark to divide the file into two equal tasks.
            pq.write_table(table.slice(begin, size), file, row_group_size=max(1, size // 8), compression="none")
    times = table["at"].cast(pa.int64()).to_numpy() - BEGIN + LENGTH - SLIDE
    columns = [times, table["g"].to_numpy(), *(table[name].to_numpy() for name in case.names)]
    np.rec.fromarrays(columns).tofile(folder / "rows.bin")


def streamed(spark: SparkSession, case: Case, files: Path, target: Path) -> None:
    """Answer the stream by skypane, one file a micro-batch."""
    schema = ", ".join(["at timestamp", "g long", *(f"{name} double" for name in case.names)])
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))
    query = sp.Skyline(sp.from_sense(case.names, ["min"] * case.criteria), by="g")
    job = sp.stream(
        rows, query, time="at", window=WINDOW, slide=EVERY, progress=sp.Watermark(DELAY),
        checkpoint=str(target.with_suffix(".checkpoint")), output=str(target),
    )  # fmt: skip
    handle = job.start(trigger="available now")
    handle.await_termination()
    handle.drain()


def by_windflow(case: Case, records: Path, target: Path) -> Times:
    """Answer the stream by WindFlow."""
    program = windflow.program("group_skylines", {"CRITERIA": case.criteria})
    return timed([program, records, target, str(LENGTH), str(SLIDE), str(LATE)], target.parent)


def answers(name: str, case: Case, target: Path) -> pa.Table:
    """Return what a way has written: window (in microseconds since 1970), group, criteria."""
    if name == OTHERS:
        fields = [("w", "<i8"), ("g", "<i8"), *((column, "<f8") for column in case.names)]
        found = np.fromfile(target, np.dtype(fields))
        starts = found["w"] * SLIDE - LENGTH + SLIDE + BEGIN
        return pa.table({"w": starts, **{column: found[column] for column in ("g", *case.names)}})
    columns = ", ".join(["epoch_us(window_start) AS w", "g", *case.names])
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT {columns} FROM read_parquet('{target}/*.parquet')").to_arrow_table()  # noqa: S608 - names of ours


class Check:
    """Compares the answers of all ways with those of the first."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._first: pa.Table | None = None

    def __call__(self, name: str, target: Path) -> None:
        """Raise AssertionError unless the answers are those of the first way."""
        found = answers(name, self._case, target)
        found = found.sort_by([(column, "ascending") for column in found.column_names]).combine_chunks()
        first = self._first = self._first if self._first is not None else found
        assert found.num_rows == first.num_rows > 0, f"{name}: {found.num_rows} rows instead of {first.num_rows}"
        for column in first.column_names:
            assert found[column].equals(first[column]), f"{name}: other values of {column}"


def measured(spark: SparkSession, case: Case, rounds: int) -> Comparison:
    """Return the comparison of a case."""
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as folder:
        inputs, scratch = Path(folder) / "inputs", Path(folder) / "answers"
        scratch.mkdir()
        write(case, inputs)
        ways: dict[str, Way] = {
            f"skypane, {size:,} rows a batch": partial(streamed, spark, case, inputs / str(size))
            for size in case.batches
        }
        ways[OTHERS] = partial(by_windflow, case, inputs / "rows.bin")
        named = f"{case.criteria} criteria, {case.rows:,} rows"
        return compared("skylines by group", named, case.rows, ways, rounds=rounds, scratch=scratch, check=Check(case))


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return a comparison for each number of criteria."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, one round")
    parser.add_argument("--criteria", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    quick = arguments.quick
    spark = sp.session("local[2]", "skypane-bench")
    cases = [
        Case(50_000, criteria, (25_000, 10_000)) if quick else Case(1_000_000 if criteria > 4 else 2_000_000, criteria)
        for criteria in arguments.criteria
    ]
    return [measured(spark, case, 1 if quick else arguments.rounds) for case in cases]


if __name__ == "__main__":
    main()
