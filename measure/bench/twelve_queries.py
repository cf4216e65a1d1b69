"""The twelve queries of paper 2, table 2, on Spark: by skypane and by Spark's own windows, in turn.

    python -m measure.bench.twelve_queries [--quick] [--only QUERY ...] [--tuples N] [--rounds N]

The rows are those of the paper's designs (skypane_papers.multiway_runs), with a minute for the paper's unit of time. Of
each query, the answers of both and of the paper's baseline MQLF in one process are compared first: every window of
every key, which must be equal to the last bit. `first` is by time, then by input, then by the sequence of the input, the
order in which all designs merge. Each way runs once to warm up; then both take turns, writing nothing.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from measure.bench.cached_rows import cached_rows
from measure.processes import cpu_seconds
from measure.results.record import Found, Table
from skypane_papers.multiway import MQLF
from skypane_papers.multiway_runs import KEYS, QUERIES, Query, streams, texts

INPUTS: Final = 20
UNIT: Final = 60_000
"""Microseconds of a thousandth of the paper's unit, which is a minute here."""
START: Final = 1_699_999_200_000_000
"""A time at which a window of every query begins."""
PARTITIONS: Final = 2

OCTET: Final = r"(?:25[0-5]|2[0-4]\d|[01]?\d?\d)"
MATCHES: Final = {"mail": [r"[\w.+-]@([A-Za-z0-9-]+\.)+[A-Za-z]{2}"]}
MATCHES["mail or ip"] = [*MATCHES["mail"], rf"(?<![\d.])({OCTET}\.){{3}}{OCTET}(?!\d)"]
"""Regular expressions, of which a comment has to match one."""

FUNCTIONS: Final[dict[str, tuple[Any, Callable[[], Column]]]] = {
    "first": (sp.first("value", order="place"), lambda: sf.min_by("value", "place")),
    "count": (sp.count(), lambda: sf.count("*")),
    "avg": (sp.avg("value"), lambda: sf.avg("value")),
}
"""Functions by name: skypane's, and Spark's."""


def rows(query: Query, tuples: int) -> pa.Table:
    """Return the rows of all inputs: at, input, place (in the merged order), key, and value or comment."""
    inputs = streams(query, INPUTS, tuples)
    times, keys, values = (np.concatenate(column) for column in zip(*inputs, strict=True))
    sources = np.repeat(np.arange(INPUTS), [len(mine[0]) for mine in inputs])
    place = np.empty(len(times), np.int64)
    place[np.lexsort((sources, times))] = np.arange(len(times))
    at = pa.array(START + UNIT * times, pa.timestamp("us", "UTC"))
    sent = texts(query.words).take(pa.array(values)) if query.where else pa.array(values)
    return pa.table({"at": at, "input": sources, "place": place, "key": keys, "value": sent})


def selected(frame: DataFrame, query: Query) -> DataFrame:
    """Return the rows that count: all, or those whose comment matches."""
    if not query.where:
        return frame
    found = [sf.col("value").rlike(pattern) for pattern in MATCHES[query.where]]
    return frame.where(found[0] if len(found) == 1 else found[0] | found[1])


def native(frame: DataFrame, query: Query) -> DataFrame:
    """Spark's own windows."""
    of = sf.window("at", f"{query.size} minutes", f"{query.advance} minutes")
    grouped = selected(frame, query).groupBy(of.alias("w"), "key").agg(FUNCTIONS[query.function][1]().alias("answer"))
    return grouped.select(sf.col("w.start").alias("window_start"), "key", "answer")


def ours(frame: DataFrame, query: Query) -> DataFrame:
    """Skypane."""
    asked = sp.Aggregate("key", answer=FUNCTIONS[query.function][0])
    length, slide = f"{query.size} minutes", f"{query.advance} minutes"
    answers = sp.ask(selected(frame, query), asked, time="at", window=length, slide=slide)
    return answers.select("window_start", "key", "answer")


WAYS: Final[dict[str, Callable[[DataFrame, Query], DataFrame]]] = {"native": native, "skypane": ours}


def in_one_process(query: Query, tuples: int) -> pa.Table:
    """Return the answers of MQLF."""
    inputs = streams(query, INPUTS, tuples)
    design = MQLF(INPUTS, query.aggregation(), room=max(len(mine[0]) for mine in inputs))
    for source, mine in enumerate(inputs):
        assert design.add(source, *mine) == len(mine[0])
        design.leave(source)
    found = list(iter(design.next_winset, None))
    starts = np.repeat([START + UNIT * winset.start for winset in found], [len(winset.keys) for winset in found])
    keys, states = (
        np.concatenate(column) for column in zip(*((each.keys, each.states) for each in found), strict=True)
    )
    text = query.where and query.function == "first"
    answers = texts(query.words).take(pa.array(states)) if text else pa.array(states)
    return ordered(
        pa.table({"window_start": pa.array(starts, pa.timestamp("us", "UTC")), "key": keys, "answer": answers})
    )


def ordered(answers: pa.Table) -> pa.Table:
    """Return answers by window and key, as microseconds and columns of one piece."""
    starts = answers["window_start"].cast(pa.timestamp("us", "UTC"))
    table = pa.table({"window_start": starts, "key": answers["key"], "answer": answers["answer"]})
    return table.sort_by([("window_start", "ascending"), ("key", "ascending")]).combine_chunks()


def check(frame: DataFrame, query: Query, tuples: int) -> int:
    """Return the number of answers; raise AssertionError unless both ways give those of MQLF, every one of them."""
    right = in_one_process(query, tuples)
    for way, asked in WAYS.items():
        found = ordered(asked(frame, query).toArrow())
        assert found.num_rows == right.num_rows, (way, found.num_rows, right.num_rows)
        for name in right.column_names:
            assert pc.all(pc.equal(found[name], right[name])).as_py(), (way, name)
    return int(right.num_rows)


def timed(frame: DataFrame, query: Query, way: str) -> tuple[float, float]:
    """Return the wall and CPU seconds of one run."""
    cpu, began = cpu_seconds(), time.perf_counter()
    WAYS[way](frame, query).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began, cpu_seconds() - cpu


def compare(spark: SparkSession, name: str, tuples: int, rounds: int) -> list[str]:
    """Return a line of the table."""
    query = QUERIES[name]
    frame = cached_rows(spark, rows(query, tuples), PARTITIONS)
    count = check(frame, query, tuples)  # the first run of both ways, which warms up
    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, found in taken.items():
            found.append(timed(frame, query, way))
    frame.unpersist()
    wall, cpu = (
        {way: statistics.median(each[kind] for each in found) for way, found in taken.items()} for kind in (0, 1)
    )
    told = [name, f"{query.function} {query.where}".strip(), f"{KEYS[query.data]:,}", f"{query.size // query.advance}"]
    return [
        *told, f"{count:,}", *(f"{wall[way]:.2f} / {cpu[way]:.2f}" for way in WAYS),
        *(f"{kind['native'] / kind['skypane']:.1f}" for kind in (wall, cpu)),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few tuples")
    parser.add_argument(
        "--only", nargs="+", choices=QUERIES, default=list(QUERIES), metavar="QUERY", help="such as k-OS"
    )
    parser.add_argument("--tuples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    tuples, rounds = (20_000, 1) if arguments.quick else (arguments.tuples, arguments.rounds)
    spark, lines = sp.session("local[2]", "skypane-bench"), []
    for name in arguments.only:
        lines.append(compare(spark, name, tuples, rounds))
        print(lines[-1], flush=True)
    head = ["query", "function", "keys", "w/s", "answers", *(f"{way}, s wall / CPU" for way in WAYS)]
    table = Table("multiway.md", "twelve", [*head, "times faster, wall", "CPU"], lines)
    print(table.text)
    return [table] if arguments.only == list(QUERIES) else []


if __name__ == "__main__":
    main()
