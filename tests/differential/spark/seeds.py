"""The command line of what compares drawn values with Spark's: one seed after the other, on one session."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from itertools import count, islice

from pyspark.sql import SparkSession
from tests.differential.spark.session import started

_SHOWN = 20


def run(kind: str, tried: Callable[[SparkSession, int], tuple[list[str], int]]) -> int:
    """Try seeds for as long as the arguments say; return 1 at the first that has differences, after some of them are printed.

    tried   returns the differences of a seed, and how many values it has compared
    """
    parser = argparse.ArgumentParser(prog=f"python -m tests.differential.spark.{kind}")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--cases", type=int, default=None, help="seeds")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    arguments = parser.parse_args()
    spark, began, compared, seeds = started(), time.monotonic(), 0, 0
    for seed in islice(count(arguments.seed), arguments.cases):
        if time.monotonic() - began > arguments.seconds:
            break
        try:
            found, more = tried(spark, seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        if found:
            print(f"seed {seed}, {kind}: {len(found)} differ, such as", *found[:_SHOWN], sep="\n", flush=True)
            return 1
        compared, seeds = compared + more, seeds + 1
    seconds = time.monotonic() - began
    print(f"{seeds} cases of {kind}, from seed {arguments.seed} on: {compared:,} values agree in {seconds:.0f} s")
    return 0
