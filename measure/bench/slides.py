"""The cost of the shape of a window: slides that divide it and slides that do not, few slides per window and many.

    python -m measure.bench.slides [--quick]

The stream and the query are those of measure.bench.streaming, with other windows. A slide that does not divide the
window cuts each slide into two panes; panes of the greatest common divisor, 1 ms for 1 s and 333 ms, would be 333 per
slide. With more slides per window the answers have more rows too; *counted* does not write them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from measure.bench.streaming import WARM_UP, Case, Pipeline, engine, listened, measure
from measure.results.record import Found, Table

WINDOW_MILLIS = 1_000
SLIDES = [200, 333, 250, 500]
"""Milliseconds; 333 is between the two dividing slides that follow it, and nearest to the first of them."""

SPANS = [5, 20, 60, 100]
"""Slides of 200 ms in a window."""


def pipelines() -> dict[str, Pipeline]:
    """Return the query with each shape of window; long ones with their answers counted too."""
    shapes = [(WINDOW_MILLIS, slide) for slide in SLIDES] + [(200 * span, 200) for span in SPANS[1:]]
    asked = {_said(*shape): _asked(*shape) for shape in shapes}
    return asked | {f"{_said(200 * span, 200)}, counted": _asked(200 * span, 200, counted=True) for span in SPANS}


def _said(window: int, slide: int) -> str:
    return f"{window:,} ms every {slide} ms"


def _asked(window: int, slide: int, *, counted: bool = False) -> Pipeline:
    return partial(engine, counted=counted, window=f"{window} milliseconds", slide=f"{slide} milliseconds")


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and small batches, one round")
    parser.add_argument("--criteria", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="shapes with this in their names")
    arguments = parser.parse_args(argv)
    spark, listener = listened()
    shapes, columns = pipelines(), []
    shapes = {name: asked for name, asked in shapes.items() if (arguments.only or "") in name}
    for criteria in arguments.criteria:
        # The longest windows are 20 s, for which 1.5 M rows are enough.
        case = Case(500_000, criteria, WARM_UP + 1) if arguments.quick else Case(1_000_000, criteria, WARM_UP + 4)
        rates = measure(spark, listener, case, 1 if arguments.quick else arguments.rounds, shapes)
        columns.append([f"{rate:,.0f}" for rate in rates.values()])
        print(criteria, rates, flush=True)
    heads = (f"rows/s, {criteria} criteria" for criteria in arguments.criteria)
    lines = [list(line) for line in zip(shapes, *columns, strict=True)]
    table = Table("bench-streaming.md", "slides", ["window", *heads], lines)
    print(table.text)
    return [] if arguments.only else [table]


if __name__ == "__main__":
    main()
