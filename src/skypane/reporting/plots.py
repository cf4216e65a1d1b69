"""Plots of the report: rates, latencies, drops, sizes, fronts, steps and workers, each as an SVG element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skypane.metrics import BatchMetrics, drop_ratios
from skypane.reporting.canvas import BAD, INK, MUTED, PAPER, SERIES, WIDTH, as_svg, legend, styled
from skypane.reporting.plot_style import date_axis
from skypane.reporting.snapshot import Criterion, Example, FrontSizes
from skypane.reporting.timing import AnswerTimes
from skypane.types import FloatArray, IntArray

#: seconds in a unit of time, and its name
_UNITS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))
_STEPS = {"plq": "panes (PLQ)", "wlq": "windows (WLQ)"}


def rate(batches: Sequence[BatchMetrics]) -> str:
    """Plot the rows per second of wall clock, where a batch lasts from its start to the start of the next one."""
    seconds = np.array([metrics.started_at for metrics in batches])
    ends = np.append(seconds[1:], seconds[-1] + batches[-1].seconds.get("total", 0.0))
    row_counts = np.array([metrics.rows for metrics in batches], float)
    rates = row_counts / np.maximum(ends - seconds, 1e-3)
    with styled():
        figure, axes = _figure()
        since = seconds - seconds[0]
        axes.plot(since, rates, ".", markersize=3.5, color=SERIES[0], alpha=0.45)
        axes.plot(since, _smooth(rates), color=SERIES[0])
        axes.set(xlabel="seconds since the start", ylabel="rows per second", ylim=(0, None))
        axes.yaxis.set_major_formatter(_thousands)
        return as_svg(figure)


def latency(times: AnswerTimes, speedup: float | None) -> str:
    """Plot the time from a window's first row, and from its end, to its answer; in stream time for a replay."""
    scale, unit = (speedup / 3600.0, "stream hours") if speedup else (1.0, "seconds")
    with styled():
        figure, axes = _figure()
        when = _dates(times.end)
        dots = slice(None, None, 1 + len(when) // 1500)  # more dots than pixels would only enlarge the file
        for seconds, name, colour in (
            (times.latency, "since its first row", SERIES[0]),
            (times.lag, "since its end", SERIES[1]),
        ):
            values = seconds * scale
            axes.plot(when[dots], values[dots], ".", markersize=2.5, color=colour, alpha=0.35)
            axes.plot(when, _smooth(values), color=colour, label=name)
        axes.set(ylabel=unit, ylim=(0, None))
        date_axis(axes)
        legend(axes)
        return as_svg(figure)


def drops(batches: Sequence[BatchMetrics]) -> str:
    """Plot the share of rows dropped so far against the drop budget, and below it the slack."""
    timed = [metrics for metrics in batches if metrics.newest is not None]
    when = _dates(np.array([metrics.newest for metrics in timed]))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for (name, shares), colour in zip(drop_ratios(timed).items(), cycle(SERIES), strict=False):
            of = f" by {name}" if name else ""
            above.plot(when, 100 * np.array(shares), color=colour, label=f"dropped rows so far{of}")
        budget = timed[-1].drop_budget
        if budget is not None:
            above.axhline(budget * 100, color=BAD, linestyle=(0, (5, 3)), label="drop budget")
        above.set(ylabel="% of rows", ylim=(0, None))
        legend(above)
        slack = np.array([(metrics.slack or 0) / 1e6 for metrics in timed])
        long, unit = next((long, unit) for long, unit in _UNITS if slack.max() >= long or long == 1.0)
        below.plot(when, slack / long, color=SERIES[1], drawstyle="steps-post")
        below.set(ylabel=f"slack ({unit})", ylim=(0, None))
        date_axis(below)
        return as_svg(figure)


def sizes(fronts: FrontSizes) -> str:
    """Plot the rows of the answers over time, one line per group, as a running median if there are many windows."""
    groups = sorted(set(fronts.group))[: len(SERIES)]
    with styled():
        figure, axes = _figure()
        names = np.array(fronts.group)
        for group, colour in zip(groups, SERIES, strict=False):
            mine = names == group
            axes.plot(
                _dates(fronts.end[mine]), _smooth(fronts.row_counts[mine].astype(float)), color=colour, label=group
            )
        axes.set(ylabel="rows of the answer", ylim=(0, None))
        date_axis(axes)
        if len(groups) > 1:
            legend(axes)
        return as_svg(figure)


def front(chosen: Example, criteria: Sequence[Criterion]) -> str:
    """Plot the first criterion against each other one: the front, over all rows of the window if they are known."""
    first, *others = criteria
    with styled():
        figure = Figure(figsize=(WIDTH, 0.6 + 2.5 * len(others)), layout="constrained")
        panels = np.atleast_1d(figure.subplots(len(others), 1, sharex=True))
        for axes, other in zip(panels, others, strict=True):
            if chosen.everything is not None:
                x, y = (_numbers(chosen.everything, c) for c in (first, other))
                axes.plot(x, y, ".", markersize=4, color=MUTED, alpha=0.35, label="all rows of the window")
            x, y = (_numbers(chosen.front, c) for c in (first, other))
            axes.plot(x, y, "o", markersize=6, markerfacecolor=SERIES[0], markeredgecolor=PAPER, label="the front")
            axes.set_ylabel(_aimed(other))
        panels[-1].set_xlabel(_aimed(first))
        legend(panels[0])
        return as_svg(figure)


def stages(batches: Sequence[BatchMetrics]) -> str:
    """Plot the median seconds of each step of a batch."""
    steps = _steps(batches)
    medians = [float(np.median([metrics.seconds.get(name, 0.0) for metrics in batches])) for name in steps]
    with styled():
        figure = Figure(figsize=(WIDTH, 0.5 + 0.38 * len(steps)), layout="constrained")
        axes = figure.subplots()
        bars = axes.barh(
            [_STEPS.get(name, name) for name in steps], np.array(medians) * 1e3, color=SERIES[0], height=0.62
        )
        axes.bar_label(bars, fmt="%.0f ms", padding=4, color=INK)
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.margins(x=0.16)
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        return as_svg(figure)


def _steps(batches: Sequence[BatchMetrics]) -> list[str]:
    """Return the steps of all batches, those of the batch with most steps first; a drain has no pane level."""
    whole = sorted(batches, key=lambda metrics: -len(metrics.seconds))
    return [name for name in dict.fromkeys(name for metrics in whole for name in metrics.seconds) if name != "total"]


def workers(batches: Sequence[BatchMetrics]) -> str:
    """Plot the workers available to each level, and below them their utilisation, by wall clock."""
    since = np.array([metrics.started_at - batches[0].started_at for metrics in batches])
    with styled():
        figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for level, name, rho, colour in (
            ("plq", "panes (PLQ)", "rho", SERIES[0]),
            ("wlq", "windows (WLQ)", "rho_wlq", SERIES[1]),
        ):
            numbers = np.array([metrics.workers.get(level, np.nan) for metrics in batches])
            above.plot(since, numbers, color=colour, drawstyle="steps-post", label=name)
            load = np.array(
                [np.nan if (value := getattr(metrics, rho)) is None else value for metrics in batches], float
            )
            below.plot(since, load, ".", markersize=3.5, color=colour, alpha=0.6)
        below.axhline(0.9, color=MUTED, linestyle=(0, (5, 3)))
        above.set(ylabel="workers", ylim=(0, None))
        below.set(xlabel="seconds since the start", ylabel="utilisation", ylim=(0, None))
        legend(above)
        return as_svg(figure)


def _aimed(criterion: Criterion) -> str:
    return f"{criterion.label}, {criterion.good} is better"


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    return figure, figure.subplots()


def _dates(times: IntArray) -> FloatArray:
    days: FloatArray = times / 86_400e6
    return days


def _thousands(value: float, _: object = None) -> str:
    return f"{value:,.0f}"


def _smooth(values: FloatArray) -> FloatArray:
    """Return the running median over about a sixtieth of the values, for the line through the dots."""
    half = len(values) // 120
    if half == 0:
        return values
    padded = np.pad(values, half, mode="edge")
    medians: FloatArray = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1)
    return medians


def _numbers(table: pa.Table, criterion: Criterion) -> FloatArray:
    column = table.column(criterion.column)
    numbers: FloatArray = column.to_numpy().astype(float)
    return numbers
