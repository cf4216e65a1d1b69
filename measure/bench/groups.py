"""The cost of groups: one skyline per window, one for each of 100 groups, and one for each of 10,000 groups.

    python -m measure.bench.groups [--quick]

The stream and the query are those of measure.bench.streaming. With groups the answers have 22 and 150 times as many
rows; *counted* does not write them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from measure.bench.streaming import WARM_UP, Case, Pipeline, engine, listened, measure
from measure.results.record import Found, Table

GROUPS = (100, 10_000)


def pipelines() -> dict[str, Pipeline]:
    """Return the query by each number of groups, its answers written and counted."""
    by: dict[str, tuple[str, ...]] = {"none": (), **{f"{count:,}": (f"g{count}",) for count in GROUPS}}
    return {
        f"{name}{', counted' if counted else ''}": partial(engine, by=columns, counted=counted)
        for counted in (True, False)
        for name, columns in by.items()
    }


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
    lines = [
        [name, f"{rate:,.0f}", f"{rates['none, counted' if 'counted' in name else 'none'] / rate:.2f}"]
        for name, rate in rates.items()
    ]
    table = Table("bench-streaming.md", "groups", head, lines)
    print(table.text)
    return [table]


if __name__ == "__main__":
    main()
