"""Skylines of windows without groups: the engine against the C++ program of paper 1, and against an empty Python stage.

    python -m measure.bench.papers_cpp [--quick] [--criteria 4 8] [--rows 1000000 100000]

The stream, the query and the engine's rows per second are those of measure.bench.streaming. The program gets the same rows over a
socket, has one worker for panes and one for windows, and its time is that from the first row to its end. The "Python stage"
is a map stage that passes Arrow batches through, without Spark's sum of the bytes of a batch after each row, as in the engine. They
run in turn. From 8 criteria on the program gets only the first half million rows: it would take up to half an hour a round for all.
Small batches are measured with 4 and 8 criteria only, because the more criteria, the less a batch's fixed costs matter. The program is
run where it is built (`python -m measure.peers`).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from measure.bench.streaming import PANE_MICROS, WARM_UP, Case, Pipeline, Progress, engine, listened, unmeasured
from measure.peers import papers_cpp as cpp
from measure.peers.places import MissingError
from measure.processes import cpu_seconds
from measure.results.record import Comparison, Found, Table, Times
from skypane.types import FloatArray

STAGE, PROGRAM, ENGINE = "a Python stage", "C++ of paper 1", "skypane"
PIPELINES: Final[Mapping[str, Pipeline]] = {ENGINE: engine, STAGE: unmeasured}
CRITERIA: Final = (4, 6, 8, 10, 12)
LENGTH, SLIDE = 1_000, PANE_MICROS // 1_000
"""Milliseconds of a window."""
LARGE: Final = 500_000
"""Rows of a batch up to which it is small."""
SMALL: Final = (4, 8)
"""Criteria of small batches, unless others are asked for."""
SLOW_FROM, ROWS_OF_SLOW = 8, 500_000
"""Criteria from which on the program gets no more than so many rows."""
HEAD: Final = (
    "rows/batch",
    "criteria",
    "engine, rows/s",
    "Python stage, rows/s",
    "C++, rows/s",
    "engine : C++",
    "late in the C++",
)


def rows_of(case: Case, folder: Path) -> FloatArray:
    """Return the rows as the program takes them: criteria, time of the event, time of arrival; in the order of the files.

    Times are a slide later, because the first ones may be before 0. Times of arrival are 0: rows come as fast as they are taken.
    """
    files = sorted(map(str, folder.glob("*.parquet")))
    table = ds.dataset(files).to_table()
    times = table["time"].cast(pa.int64()).to_numpy() + PANE_MICROS
    columns = [*(table[name].to_numpy() for name in case.columns()), times, np.zeros(len(times))]
    return np.column_stack(columns).astype(np.float64)


def compare(spark: SparkSession, listener: Progress, case: Case, rounds: int) -> tuple[Comparison, list[int]]:
    """Return the rounds of all ways after one that warms up Spark, and how many rows the program has dropped in each.

    The CPU seconds of a pipeline are those of all its batches, with the first ones, whose wall seconds do not count.
    """
    sides: dict[str, list[Times]] = {}
    missing: dict[str, str] = {}
    dropped: list[int] = []
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
        folder, scratch = Path(temporary) / "stream", Path(temporary) / "scratch"
        case.write(folder)
        rows = rows_of(case, folder)
        received = rows if case.criteria < SLOW_FROM else rows[:ROWS_OF_SLOW]
        for turn in range(rounds + 1):
            for name, run in PIPELINES.items():
                cpu = cpu_seconds()
                rate = listener.rate(run(spark, case, folder, scratch), case.batches)
                if turn:
                    sides.setdefault(name, []).append(Times(len(rows) / rate, cpu_seconds() - cpu))
                shutil.rmtree(scratch, ignore_errors=True)
            if not turn:
                continue  # the program has nothing to warm up
            try:
                found = cpp.run(received, case.criteria, LENGTH, SLIDE, scratch)
            except MissingError as error:
                missing[PROGRAM] = str(error)
                continue
            sides.setdefault(PROGRAM, []).append(found.times)
            dropped.append(found.dropped)
            shutil.rmtree(scratch, ignore_errors=True)
    named = f"{case.criteria} criteria, {case.rows:,} rows a batch"
    counts = {**dict.fromkeys(PIPELINES, len(rows)), PROGRAM: len(received)}
    return Comparison("skylines of a stream", named, counts, ENGINE, sides, missing), dropped


def line(case: Case, found: Comparison, dropped: Sequence[int]) -> list[str]:
    """Return a line of the table."""
    share = statistics.median(dropped) / found.rows_of(PROGRAM)
    rates = (found.rate(side) for side in (ENGINE, STAGE, PROGRAM))
    ratio = found.ratio(PROGRAM)
    return [f"{case.rows:,}", str(case.criteria), *(f"{rate:,.0f}" for rate in rates), f"{ratio:.2f}", f"{share:.2%}"]


def cases(rows: Sequence[int], criteria: Sequence[int] | None) -> list[Case]:
    """Return the cases of batches of so many rows, with these criteria; None: all that there are, and SMALL of small batches."""
    built = cpp.built(CRITERIA) or [*SMALL]
    found = []
    for count in rows:
        is_small = count <= LARGE
        usual = [each for each in built if not is_small or each in SMALL]
        found += [Case(count, each, WARM_UP + (12 if is_small else 4)) for each in criteria or usual]
    return found


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the comparisons, and the table where the program is built."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small batches, one round")
    parser.add_argument("--criteria", type=int, nargs="+")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.rows, arguments.criteria = [20_000], [SMALL[0]]
    spark, listener = listened()
    comparisons, lines = [], []
    for case in cases(arguments.rows, arguments.criteria):
        found, dropped = compare(spark, listener, case, 1 if arguments.quick else arguments.rounds)
        comparisons.append(found)
        if PROGRAM in found.sides:
            lines.append(line(case, found, dropped))
        print({side: f"{found.rate(side):,.0f}" for side in found.sides}, flush=True)
    if not lines:
        return [*comparisons]
    table = Table("bench-streaming.md", "papers", HEAD, lines)
    print(table.text)
    return [table, *comparisons]


if __name__ == "__main__":
    main()
