"""The cost of texts in rows, whose bytes Spark may add up after every row: one query, three ways to send its rows.

    python -m measure.bench.texts [--quick]

The query is the skyline of measure/bench/streaming.py over rows with criteria and a few texts of about fifteen letters.
Rows are sent in turn in each way of `skypane.runtime.spark.arrow_batches`: as short texts, as the engine does while
they are short; in smaller batches with more room per row; and with their bytes added up. Figures are rows per second as
in measure/bench/streaming.py, and CPU seconds of all processes per million rows.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from measure.bench.streaming import WARM_UP, Case, Progress, answered, listened, stream
from measure.processes import cpu_seconds
from measure.results.record import Found, Table
from skypane.runtime.spark.arrow_batches import ways
from skypane.runtime.spark.engine import arrow_transfer

WAYS = ("short, 4 KB", "short, 64 KB", "added up")


def with_texts(rows: DataFrame, texts: int) -> DataFrame:
    """Return rows with so many columns of texts in place of the numbers of their groups."""
    made = {f"t{index}": sf.concat(sf.lit("device no. "), sf.col("g1000").cast("string")) for index in range(texts)}
    return rows.withColumns(made).drop("g1000")


def run(spark: SparkSession, case: Case, texts: int, folder: Path, scratch: Path) -> str:
    """Run the query over the files in `folder`; return its id."""
    return answered(with_texts(stream(spark, folder), texts), sp.Skyline(case.preference()), scratch)


class Figure(NamedTuple):
    """Rows per second, and CPU seconds of all processes for a million rows."""

    rate: float
    cpu: float


def measure(spark: SparkSession, listener: Progress, case: Case, texts: int, rounds: int) -> dict[str, Figure]:
    """Return the medians of each way, run in turn, to and fro, `rounds` times after one that warms up."""
    figures: dict[str, list[Figure]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
        folder, scratch = Path(temporary) / "stream", Path(temporary) / "scratch"
        case.write(folder)
        for number in range(rounds + 1):
            for index, name in list(enumerate(WAYS))[:: -1 if number % 2 else 1]:
                before = cpu_seconds()
                with patch.object(arrow_transfer, "ways", lambda schema, one=index: ways(schema)[one:]):
                    rate = listener.rate(run(spark, case, texts, folder, scratch), case.batches)
                figures[name].append(Figure(rate, (cpu_seconds() - before) / (case.rows * case.batches / 1e6)))
                shutil.rmtree(scratch)
    return {name: Figure(*map(statistics.median, zip(*seen[1:], strict=True))) for name, seen in figures.items()}


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one case, one round")
    parser.add_argument("--texts", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--criteria", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    spark, listener = listened()
    cases = [(criteria, texts) for criteria in arguments.criteria for texts in arguments.texts]
    lines = []
    for criteria, texts in cases[:1] if arguments.quick else cases:
        case = Case(1_000_000, criteria, WARM_UP + 4, groups=(1_000,))
        figures = measure(spark, listener, case, texts, 1 if arguments.quick else arguments.rounds)
        ratio = figures[WAYS[0]].rate / figures[WAYS[-1]].rate
        told = (f"{figure.rate / 1e3:,.0f}K, {figure.cpu:.2f} s" for figure in figures.values())
        lines.append([str(criteria), str(texts), *told, f"{ratio:.2f}"])
        print(lines[-1], flush=True)
    head = ["criteria", "texts", *WAYS, "short : added up, rows/s"]
    table = Table("bench-streaming.md", "texts", head, lines)
    print(table.text)
    return [table]


if __name__ == "__main__":
    main()
