"""What long windows cost if each row is written for each window, and if it is written once, as a stay.

    python -m measure.bench.stays [--quick]

The stream and the query are those of measure.bench.streaming with 8 criteria, with windows of 5 to 100 slides. Both forms
of answers are run in turn, over batches of a million rows (100 slides) and of 100,000 (10 slides). *Lines*: rows in the
files of the output, of all batches.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from measure.bench.streaming import WARM_UP, Case, Progress, answered, listened, stream
from measure.tables import markdown_table, replace_between
from skypane.operators.skyline import Skyline
from skypane.operators.stay_columns import STAYS, WINDOWS, AnswerForm

SLIDE_MILLIS = 200
SPANS = [5, 20, 100]
"""Slides in a window."""

CRITERIA = 8
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


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="large batches only, one round, nothing recorded")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spark, listener = listened()
    cases = [Case(1_000_000, CRITERIA, WARM_UP + 4)]
    if not arguments.quick:
        cases.append(Case(100_000, CRITERIA, WARM_UP + 12))
    lines = []
    for case in cases:
        found = measure(spark, listener, case, 1 if arguments.quick else arguments.rounds)
        lines += [_line(case, span, found) for span in SPANS]
    heads = ["rows/batch", "slides in a window"]
    heads += [f"{what}, {form}" for what in ("rows/s", "lines") for form in FORMS]
    table = markdown_table([*heads, f"stays : windows of {SPANS[0]} slides"], lines)
    print(table)
    if not arguments.quick:
        replace_between(Path("docs/stays.md"), "stays", table)


def _line(case: Case, span: int, found: Measured) -> list[str]:
    rates = [f"{found[span, form][0]:,.0f}" for form in FORMS]
    lines = [f"{found[span, form][1]:,}" for form in FORMS]
    return [f"{case.rows:,}", str(span), *rates, *lines, f"{found[span, STAYS][0] / found[SPANS[0], WINDOWS][0]:.2f}"]


if __name__ == "__main__":
    main()
