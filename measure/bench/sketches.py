"""Our sketches, which depend only on the rows, compared with those of Apache DataSketches of the same size.

    python -m measure.bench.sketches [--quick]

Distinct values are counted with bottom-k (ours) and with theta, which is a bottom-k sketch too, and HLL (theirs).
Quantiles are computed with DDSketch (ours) and KLL (theirs). Errors are root mean squares of relative errors over
several streams; speed is that of one stream in M values per CPU second.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence

import datasketches as ds
import numpy as np
import pyarrow as pa

import skypane as sp
from measure.results.record import Found, Table
from skypane.operators.aggregates.functions import Function
from skypane.types import FloatArray

QUANTILES = (0.01, 0.5, 0.99)
Sketch = Callable[[FloatArray], list[float]]


def ours(function: Function) -> Sketch:
    """Ask ours."""
    query = sp.Aggregate(found=function)

    def ask(values: FloatArray) -> list[float]:
        halves = [query.lift(pa.table({"x": part})) for part in np.array_split(values, 2)]
        (found,) = query.lower(query.combine(halves))["found"].to_pylist()
        return found if isinstance(found, list) else [found]

    return ask


def theta(values: FloatArray) -> list[float]:
    """Ask theta: 4,096 hashes at most, by its default."""
    union = ds.theta_union(12)
    for part in np.array_split(values, 2):
        sketch = ds.update_theta_sketch(12)
        for value in part.tolist():
            sketch.update(value)
        union.update(sketch)
    return [union.get_result().get_estimate()]


def hll(values: FloatArray) -> list[float]:
    """Ask HLL of 4,096 registers."""
    union = ds.hll_union(12)
    for part in np.array_split(values, 2):
        sketch = ds.hll_sketch(12)
        for value in part.tolist():
            sketch.update(value)
        union.update(sketch)
    return [union.get_estimate()]


def kll(values: FloatArray) -> list[float]:
    """Ask KLL of k = 200, its default, which takes arrays."""
    whole = ds.kll_doubles_sketch(200)
    for part in np.array_split(values, 2):
        sketch = ds.kll_doubles_sketch(200)
        sketch.update(part)
        whole.merge(sketch)
    return [whole.get_quantile(q) for q in QUANTILES]


def measured(
    sketch: Sketch, streams: list[FloatArray], true: Callable[[FloatArray], list[float]]
) -> tuple[float, float]:
    """Return the error and the speed."""
    squares, rates = [], []
    for values in streams:
        began = time.process_time()
        found = sketch(values)
        rates.append(len(values) / max(time.process_time() - began, 1e-6) / 1e6)
        squares += [(a / b - 1) ** 2 for a, b in zip(found, true(values), strict=True)]
    return math.sqrt(statistics.mean(squares)), statistics.median(rates)


def true_count(values: FloatArray) -> list[float]:
    """Count different values."""
    return [float(len(np.unique(values)))]


def true_quantiles(values: FloatArray) -> list[float]:
    """Sort."""
    return [float(np.sort(values)[math.floor(q * (len(values) - 1))]) for q in QUANTILES]


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few values")
    quick = parser.parse_args(argv).quick
    rng = np.random.default_rng(5)
    size, count = (20_000, 3) if quick else (200_000, 20)
    numbers = [rng.random(size) for _ in range(count)]
    skewed = [np.exp(2 * rng.normal(size=size)) for _ in range(count)]
    asked: list[tuple[str, Sketch, list[FloatArray], Sketch]] = [
        ("approx_count_distinct(error=1/64)", ours(sp.approx_count_distinct("x", error=1 / 64)), numbers, true_count),
        ("theta, 4,096", theta, numbers, true_count),
        ("HLL, 4,096", hll, numbers, true_count),
        ("approx_quantile(error=0.01)", ours(sp.approx_quantile("x", QUANTILES, error=0.01)), skewed, true_quantiles),
        ("KLL, k = 200", kll, skewed, true_quantiles),
    ]
    lines = []
    for name, sketch, streams, true in asked:
        error, rate = measured(sketch, streams, true)
        lines.append([name, f"{100 * error:.2f} %", f"{rate:.1f}"])
        print(lines[-1], flush=True)
    head = ["sketch", "relative error", "M values per CPU second"]
    return [Table("bench-aggregates.md", "sketches", head, lines)]


if __name__ == "__main__":
    main()
