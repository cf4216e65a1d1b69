"""The cost of groups: one skyline per window, one for each of 100 groups, and one for each of 10,000 groups.

    python -m measure.bench.groups [--quick]

The stream and the query are those of measure.bench.streaming. With groups the answers have 22 and 150 times as many
rows; *counted* does not write them, *as stays* writes each once for the consecutive windows that hold it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import skypane as sp
from measure.bench.streaming import WARM_UP, Case, Pipeline, answered, engine, listened, measure, stream
from measure.results.record import Found, Table
from skypane.operators.stay_columns import STAYS

GROUPS = (100, 10_000)


def pipelines() -> dict[str, Pipeline]:
    """Return the query by each number of groups, its answers counted, written, and written as stays."""
    by: dict[str, tuple[str, ...]] = {"none": (), **{f"{count:,}": (f"g{count}",) for count in GROUPS}}
    found: dict[str, Pipeline] = {
        f"{name}{', counted' if counted else ''}": partial(engine, by=columns, counted=counted)
        for counted in (True, False)
        for name, columns in by.items()
    }
    return found | {f"{name}, as stays": partial(as_stays, by=columns) for name, columns in by.items()}


def as_stays(spark: SparkSession, case: Case, folder: Path, scratch: Path, *, by: Sequence[str]) -> str:
    """Run the query with answers="stays"; return its id."""
    return answered(stream(spark, folder), sp.Skyline(case.preference(), by), scratch, answers=STAYS)


def without_groups(name: str) -> str:
    """Return which pipeline has no groups, and the same form of answers."""
    _, comma, form = name.partition(", ")
    return f"none{comma}{form}"


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small batches, one round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    spark, listener = listened()
    case = Case(100_000 if arguments.quick else 1_000_000, 4, WARM_UP + 4, groups=GROUPS)
    rates = measure(spark, listener, case, 1 if arguments.quick else arguments.rounds, pipelines())
    head = ["groups", "rows/s", "cost of a row, of that without groups"]
    lines = [[name, f"{rate:,.0f}", f"{rates[without_groups(name)] / rate:.2f}"] for name, rate in rates.items()]
    table = Table("bench-streaming.md", "groups", head, lines)
    print(table.text)
    return [table]


if __name__ == "__main__":
    main()
