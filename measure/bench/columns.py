"""The gain from not passing unused columns to Python: one query on wide rows, in two variants.

    python -m measure.bench.columns [--quick]

Rows have 100 columns; the query is the skyline of three of them and keeps these three. "pruned" declares this with
`Query.reads`; "whole rows" declares that it reads all columns, as does a query without a declaration. Lift, merges and
answers are the same. Both run on local[2] over the same parquet files, one file per micro-batch, in turn; the figures
are those of measure/bench/streaming.py.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import skypane as sp
from measure.bench.streaming import WARM_UP, Case, Progress, listened, stream
from measure.results.record import Found, Table
from skypane.operators.query import Query

WIDTH = 100
CRITERIA = ("c0", "c1", "c2")


@dataclass(frozen=True)
class Front(Query):
    """The skyline of three columns, and nothing of the others."""

    pruned: bool

    @property
    def required(self) -> Sequence[str]:
        return CRITERIA

    @property
    def _skyline(self) -> sp.Skyline:
        return sp.Skyline(sp.from_sense(CRITERIA, ["min"] * len(CRITERIA)))

    def reads(self, schema: pa.Schema) -> Sequence[str]:
        return CRITERIA if self.pruned else tuple(schema.names)

    def validate(self, schema: pa.Schema) -> None:
        self._skyline.validate(schema)

    def lift(self, rows: pa.Table) -> pa.Table:
        return self._skyline.lift(rows.select(CRITERIA))

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        return self._skyline.combine(partials)

    def lower(self, partial: pa.Table) -> pa.Table:
        return partial

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([schema.field(name) for name in CRITERIA])

    def describe(self) -> dict[str, Any]:
        return {"query": "front"}


def run(spark: SparkSession, folder: Path, scratch: Path, *, pruned: bool) -> str:
    """Run the query over the files in `folder`; return its id."""
    job = sp.stream(
        stream(spark, folder),
        Front(pruned),
        time="time",
        window="1 second",
        slide="200 milliseconds",
        checkpoint=str(scratch / "checkpoint"),
        output=str(scratch / "out"),
    )
    handle = job.start(trigger="available now")
    handle.await_termination()
    return str(handle.query.id)


WAYS: dict[str, Callable[[SparkSession, Path, Path], str]] = {
    "whole rows": partial(run, pruned=False),
    "pruned": partial(run, pruned=True),
}


def measure(spark: SparkSession, listener: Progress, case: Case, rounds: int) -> dict[str, float]:
    """Return the median rows per second of each way, run in turn `rounds` times."""
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
        folder, scratch = Path(temporary) / "stream", Path(temporary) / "scratch"
        case.write(folder)
        for _ in range(rounds):
            for name, way in WAYS.items():
                rates[name].append(listener.rate(way(spark, folder, scratch), case.batches))
                shutil.rmtree(scratch)
    return {name: statistics.median(values) for name, values in rates.items()}


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one case, one round")
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    spark, listener = listened()
    lines = []
    for row_count in arguments.rows[:1] if arguments.quick else arguments.rows:
        case = Case(row_count, WIDTH, WARM_UP + arguments.batches)
        rates = measure(spark, listener, case, 1 if arguments.quick else arguments.rounds)
        ratio = rates["pruned"] / rates["whole rows"]
        lines.append([f"{row_count:,}", *(f"{rate:,.0f}" for rate in rates.values()), f"{ratio:.1f}"])
        print(lines[-1], flush=True)
    head = ["rows/batch", *(f"{name}, rows/s" for name in WAYS), "pruned : whole"]
    table = Table("bench-streaming.md", "columns", head, lines)
    print(table.text)
    return [table]


if __name__ == "__main__":
    main()
