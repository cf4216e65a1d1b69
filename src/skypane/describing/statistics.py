"""Statistics of a stream by the estimators, each with its meaning, or with the reason why it cannot be estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from skypane.describing import years
from skypane.describing.columns import RecordedStream
from skypane.types import ConfigError, IntArray
from skypane.wording import UNKNOWN, count, percent, seconds, stamp
from skypane.workloads.estimators import (
    Dispersion,
    autocorrelation,
    counts,
    dispersion,
    dispersion_of_counts,
    gaps,
    hurst_by_range,
    hurst_by_variance,
    late_share,
    mean_correlation,
    peak_to_mean,
    skyline_share,
    squared_variation,
    zipf_exponent,
)

_SECOND = 1_000_000
#: tuples of a sample whose skyline is computed: about a pane of the papers
_SAMPLE = 10_000
#: intervals for the Hurst estimators; fewer are too coarse, and more would show the shape of single bursts
_INTERVALS = 10_000
_QUANTILES = (0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class Statistic:
    """One line of a description: `value` is printed, and `meaning` explains it."""

    topic: str
    name: str
    value: str
    meaning: str = ""


def statistics(stream: RecordedStream) -> Iterator[Statistic]:
    """Yield all statistics of a stream; if it has no rows, only their number."""
    yield Statistic("rows", "rows", count(len(stream.event)))
    if not len(stream.event):
        return
    yield from _span(stream)
    yield from rate(stream.clock)
    yield from _disorder(stream)
    yield from _skew("source", stream.source)
    yield from _skew("key", stream.key)
    yield from _criteria(stream)


def of_counts(series: IntArray) -> Iterator[Statistic]:
    """Yield the statistics of a series of tuples per second."""
    yield Statistic("rows", "rows", count(int(series.sum())))
    yield Statistic("rows", "seconds", count(len(series)))
    if not len(series):
        return
    yield Statistic("rate", "mean rate", f"{series.mean():,.6g}/s")
    yield _tried("rate", "peak to mean", lambda: f"{peak_to_mean(series):.3g}", "of tuples per second")
    yield _tried("bursts", "index of dispersion", lambda: _dispersed(dispersion_of_counts(series, 1.0)), _I)
    yield from _memory(series, 1.0)


_I = "1: Poisson; papers 1 and 5: 155 to 8,000"
_H = "0.5: no long memory; towards 1: bursts at all scales"
_NO_H = "outside 0 to 1, so no Hurst parameter: the rate has a trend or a period, or too few rows come"


def _span(stream: RecordedStream) -> Iterator[Statistic]:
    first, last = int(stream.event.min()), int(stream.event.max())
    yield Statistic("rows", "event time", f"{stamp(first)} to {stamp(last)}", seconds((last - first) / _SECOND))
    doubt = years.doubt(first, last, unit_assumed=stream.unit_assumed)
    if doubt:
        yield Statistic("rows", "warning", "years", doubt)


def rate(clock: IntArray) -> Iterator[Statistic]:
    """Yield the statistics of arrivals at `clock`, ascending microseconds, over the middle nine tenths of the rows.

    Outliers are excluded, since one row half an hour after the others would add half an hour without arrivals.
    """
    if clock[0] == clock[-1]:
        yield Statistic("rate", "mean rate", UNKNOWN, "all rows arrive at the same time")
        return
    middle, of = _middle(clock), "of the middle nine tenths of the rows, as all figures of rate and bursts"
    if middle[0] == middle[-1]:
        middle, of = clock, "of all rows: nine tenths of them arrive at the same time"
    yield from _of_arrivals(middle, of)


def _middle(clock: IntArray) -> IntArray:
    most = len(clock) - 1
    return clock[math.floor(0.05 * most) : math.ceil(0.95 * most) + 1]


def _of_arrivals(clock: IntArray, of: str) -> Iterator[Statistic]:
    length = int(clock[-1] - clock[0])
    # n + 1 arrivals have n gaps.
    yield Statistic("rate", "mean rate", f"{(len(clock) - 1) / length * _SECOND:,.6g}/s", of)
    yield _tried("rate", "peak to mean", lambda: f"{peak_to_mean(counts(clock, _SECOND)):.3g}", "of tuples per second")
    yield _tried("bursts", "index of dispersion", lambda: _dispersed(dispersion(clock)), _I)
    between = gaps(clock)
    yield _tried(
        "bursts", "SCV of gaps", lambda: f"{squared_variation(between):.4g}", "1: exponential; 0: evenly spaced"
    )
    yield _tried(
        "bursts", "lag-1 autocorrelation", lambda: f"{autocorrelation(between, 1)[0]:.3f}", "0: independent gaps"
    )
    interval = max(1, length // _INTERVALS)
    yield from _memory(counts(clock, interval), interval / _SECOND)


def _memory(series: IntArray, interval: float) -> Iterator[Statistic]:
    of = f"of counts per {seconds(interval)}; "
    for name, estimator in (("Hurst, variance", hurst_by_variance), ("Hurst, range", hurst_by_range)):
        yield _hurst(name, partial(estimator, series), of)


def _hurst(name: str, estimate: Callable[[], float], of: str) -> Statistic:
    """Return the statistic; an estimate outside the range of Hurst parameters is put in parentheses."""
    try:
        value = estimate()
    except ConfigError as error:
        return Statistic("bursts", name, UNKNOWN, str(error))
    if 0 <= value <= 1:
        return Statistic("bursts", name, f"{value:.2f}", of + _H)
    return Statistic("bursts", name, f"({value:.2f})", of + _NO_H)


def _dispersed(index: Dispersion) -> str:
    at = f"{index.value:,.4g} at {seconds(index.seconds)}"
    if index.stable:
        return at
    return {1: f"above {at}, still rising", -1: f"below {at}, still falling", 0: f"about {at}, not settled"}[
        index.trend
    ]


def _disorder(stream: RecordedStream) -> Iterator[Statistic]:
    yield Statistic(
        "disorder",
        "late share",
        percent(late_share(stream.event)),
        "rows that arrive after one with a later event time",
    )
    delay = stream.delay
    how = "arrival minus event time" if stream.arrival is not None else "behind the newest event time before it"
    yield Statistic("disorder", "mean delay", _span_text(float(delay.mean())), how)
    names = ("median delay", "90 % within", "99 % within", "longest delay")
    for name, value in zip(names, np.quantile(delay, _QUANTILES), strict=True):
        yield Statistic("disorder", name, _span_text(float(value)))


def _span_text(length: float) -> str:
    return seconds(length / _SECOND)


def _skew(name: str, codes: IntArray | None) -> Iterator[Statistic]:
    if codes is None:
        return
    row_counts = np.bincount(codes)
    row_counts = row_counts[row_counts > 0]
    yield Statistic(name, f"{name}s", count(len(row_counts)))
    yield Statistic(name, f"share of the largest {name}", percent(float(row_counts.max() / row_counts.sum())))
    if len(row_counts) > 1:
        yield _tried(name, "Zipf exponent", lambda: f"{zipf_exponent(codes):.2f}", "0: all equally frequent")


def _criteria(stream: RecordedStream) -> Iterator[Statistic]:
    points = stream.points
    if points is None:
        return
    if stream.incomparable:
        yield Statistic("criteria", "incomparable rows", count(stream.incomparable), "a criterion is null or NaN")
    if not len(points):
        return
    if points.shape[1] > 1:
        yield _tried("criteria", "mean correlation", lambda: f"{mean_correlation(points):.2f}", "below 0: conflicting")
    blocks = [points[start : start + _SAMPLE] for start in _starts(len(points))]
    share = float(np.mean([skyline_share(np.asfortranarray(block)) for block in blocks]))
    of = f"mean of {len(blocks)} times {count(len(blocks[0]))} rows"
    yield Statistic("criteria", "skyline share", percent(share), of)


def _starts(row_count: int) -> list[int]:
    """Return the first rows of up to five evenly spread samples."""
    last = max(row_count - _SAMPLE, 0)
    return sorted({round(last * part / 4) for part in range(5)}) if last >= _SAMPLE else [0]


def _tried(topic: str, name: str, value: Callable[[], str], meaning: str = "") -> Statistic:
    """Return the statistic, or the reason why there is none: an estimator raises ConfigError if it has too few rows."""
    try:
        return Statistic(topic, name, value(), meaning)
    except ConfigError as error:
        return Statistic(topic, name, UNKNOWN, str(error))
