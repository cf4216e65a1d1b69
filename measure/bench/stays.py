"""What long windows cost if each row is written for each window, and if it is written once, as a stay.

    python -m measure.bench.stays [--quick | --work]

The stream and the query are those of measure.bench.streaming with 8 criteria, with windows of 5 to 100 slides. Both forms
of answers are run in turn, over batches of a million rows (100 slides) and of 100,000 (10 slides). *Lines*: rows in the
files of the output, of all batches.

Before, one process answers the windows of 100 slides from panes that are lifted, and writes them to a file in memory,
without Spark: CPU time, which other load on the machine changes little. `--work` measures this only.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from measure.bench.streaming import PANE_MICROS, PANE_ROWS, WARM_UP, Case, Progress, answered, listened, stream
from measure.results.record import Found, Table
from skypane.operators.open_panes import WindowTask
from skypane.operators.skyline import Skyline
from skypane.operators.stay_columns import STAYS, WINDOWS, AnswerForm
from skypane.operators.window_query import WindowQuery
from skypane.windows import Windows

SLIDE_MILLIS = 200
SPANS = [5, 20, 100]
"""Slides in a window."""

PAGE = "stays.md"
CRITERIA = 8
SLIDES = 100
"""Windows of a batch of a million rows."""

BATCHES = 5
FORMS: tuple[AnswerForm, ...] = (WINDOWS, STAYS)
Measured = dict[tuple[int, AnswerForm], tuple[float, int]]
"""By slides in a window and form: rows per second, and lines written."""


def measure(spark: SparkSession, listener: Progress, case: Case, rounds: int) -> Measured:
    """Return the median rows per second of each shape and form, run in turn `rounds` times, and the lines."""
    rates: dict[tuple[int, AnswerForm], list[float]] = {(span, form): [] for span in SPANS for form in FORMS}
    lines: dict[tuple[int, AnswerForm], int] = {}
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
        folder, scratch = Path(temporary) / "stream", Path(temporary) / "scratch"
        case.write(folder)
        for _ in range(rounds):
            for (span, form), each in rates.items():
                window, slide = f"{span * SLIDE_MILLIS} milliseconds", f"{SLIDE_MILLIS} milliseconds"
                rows, query = stream(spark, folder), Skyline(case.preference())
                run = answered(rows, query, scratch, window=window, slide=slide, answers=form)
                each.append(listener.rate(run, case.batches))
                lines[span, form] = sum(ds.dataset(file).count_rows() for file in (scratch / "out").glob("*.parquet"))
                print(case.rows, span, form, f"{each[-1]:,.0f}", lines[span, form], flush=True)
                shutil.rmtree(scratch, ignore_errors=True)
    return {shape: (statistics.median(each), lines[shape]) for shape, each in rates.items()}


def work() -> Table:
    """Return the table of the CPU time and the lines of a batch's windows, by shape and form."""
    rng, query = np.random.default_rng(CRITERIA), Skyline(Case(1, CRITERIA, 1).preference())
    panes = [query.lift(_pane(rng, pane)) for pane in range(SPANS[-1] + SLIDES * BATCHES)]
    lines = []
    for span in SPANS:
        windows = Windows(span * PANE_MICROS, PANE_MICROS)
        for form in FORMS:
            answering, writing, count = _answered_and_written(query, windows, panes, stays=form == STAYS)
            lines.append([str(span), form, f"{answering * 1e3:.0f}", f"{writing * 1e3:.0f}", f"{count:,}"])
            print(lines[-1], flush=True)
    head = ["slides in a window", "answers", "CPU ms, answering", "CPU ms, writing", "lines"]
    return Table(PAGE, "stays-work", head, lines)


def _pane(rng: np.random.Generator, pane: int) -> pa.Table:
    times = np.sort(rng.integers(pane * PANE_MICROS, (pane + 1) * PANE_MICROS, PANE_ROWS))
    columns = {f"c{index}": rng.random(PANE_ROWS) for index in range(CRITERIA)}
    return pa.table({"time": pa.array(times, pa.timestamp("us", "UTC")), **columns})


def _answered_and_written(
    query: Skyline, windows: Windows, panes: Sequence[pa.Table], *, stays: bool
) -> tuple[float, float, int]:
    """Return the CPU seconds of answering and of writing the windows of a batch, medians of all but the first, and lines."""
    window_query = WindowQuery(query, windows, "UTC", stays=stays)
    worker = window_query.worker()
    answering, writing, count = [], [], 0
    for first in range(SPANS[-1] - windows.overlap, SPANS[-1] - windows.overlap + BATCHES * SLIDES, SLIDES):
        tasks = [_task(window, windows, panes) for window in range(first, first + SLIDES)]
        began = time.process_time()
        found = (worker.stays if stays else worker.answers)(tasks, lambda partial: partial)
        tables = [one.rows for one in found]
        answered_at = time.process_time()
        pq.write_table(pa.concat_tables(tables), pa.BufferOutputStream(), use_dictionary=False, compression="none")
        answering.append(answered_at - began)
        writing.append(time.process_time() - answered_at)
        count = sum(table.num_rows for table in tables)
    return statistics.median(answering[1:]), statistics.median(writing[1:]), count


def _task(window: int, windows: Windows, panes: Sequence[pa.Table]) -> WindowTask[pa.Table]:
    return WindowTask(window, tuple((pane, (panes[pane],)) for pane in windows.panes_of(window)))


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and small batches, one round")
    parser.add_argument("--work", action="store_true", help="the CPU time of answering and writing only, without Spark")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    done = work()
    print(done.text)
    if arguments.work:
        return [done]
    spark, listener = listened()
    cases = [Case(1_000_000, CRITERIA, WARM_UP + 4), Case(100_000, CRITERIA, WARM_UP + 12)]
    if arguments.quick:
        cases = [Case(500_000, CRITERIA, WARM_UP + 1)]  # 30 s of rows, for windows of 20 s
    lines = []
    for case in cases:
        found = measure(spark, listener, case, 1 if arguments.quick else arguments.rounds)
        lines += [_line(case, span, found) for span in SPANS]
    heads = ["rows/batch", "slides in a window"]
    heads += [f"{what}, {form}" for what in ("rows/s", "lines") for form in FORMS]
    table = Table(PAGE, "stays", [*heads, f"stays : windows of {SPANS[0]} slides"], lines)
    print(table.text)
    return [done, table]


def _line(case: Case, span: int, found: Measured) -> list[str]:
    rates = [f"{found[span, form][0]:,.0f}" for form in FORMS]
    lines = [f"{found[span, form][1]:,}" for form in FORMS]
    return [f"{case.rows:,}", str(span), *rates, *lines, f"{found[span, STAYS][0] / found[SPANS[0], WINDOWS][0]:.2f}"]


if __name__ == "__main__":
    main()
