"""The report's figures, as SVG that takes its colours from the page it stands in.

matplotlib draws with stand-in colours, which are then replaced by CSS variables: one figure serves light and dark.
Figures are narrow, so that their text is still read on a phone.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skypane.metrics import BatchMetrics
from skypane.reporting.snapshot import Criterion, Example, FrontSizes
from skypane.reporting.timing import AnswerTimes
from skypane.types import FloatArray, IntArray

#: stand-in colour -> CSS variable of the page
_INK, _MUTED, _GRID, _PAPER = "#010203", "#010204", "#010205", "#010206"
_SERIES = ("#010301", "#010302", "#010303", "#010304", "#010305")
_BAD = "#010401"
_VARIABLES = {
    _INK: "--ink",
    _MUTED: "--muted",
    _GRID: "--grid",
    _PAPER: "--paper",
    _BAD: "--bad",
    **{colour: f"--series-{i + 1}" for i, colour in enumerate(_SERIES)},
}
_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: searchable, in the page's font
    "svg.hashsalt": "skypane",  # equal figures give equal bytes
    "font.size": 10.5,
    "font.family": "sans-serif",
    "text.color": _INK,
    "axes.labelcolor": _MUTED,
    "axes.edgecolor": _GRID,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "xtick.color": _GRID,
    "ytick.color": _GRID,
    "xtick.labelcolor": _MUTED,
    "ytick.labelcolor": _MUTED,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}
_WIDTH = 5.2
_STEPS = {"plq": "panes (PLQ)", "wlq": "windows (WLQ)"}


def rate(batches: Sequence[BatchMetrics]) -> str:
    """Rows per second of wall clock, each batch from its start to the next one's."""
    seconds = np.array([metrics.started_at for metrics in batches])
    ends = np.append(seconds[1:], seconds[-1] + batches[-1].seconds.get("total", 0.0))
    row_counts = np.array([metrics.rows for metrics in batches], float)
    rates = row_counts / np.maximum(ends - seconds, 1e-3)
    with _styled():
        figure, axes = _figure()
        since = seconds - seconds[0]
        axes.plot(since, rates, ".", markersize=3.5, color=_SERIES[0], alpha=0.45)
        axes.plot(since, _smooth(rates), color=_SERIES[0])
        axes.set(xlabel="seconds since the start", ylabel="rows per second", ylim=(0, None))
        axes.yaxis.set_major_formatter(_thousands)
        return _svg(figure)


def latency(times: AnswerTimes, speedup: float | None) -> str:
    """From a window's first tuple, and from its end, to its answer; in the stream's own time, if it was replayed."""
    scale, unit = (speedup / 3600.0, "stream hours") if speedup else (1.0, "seconds")
    with _styled():
        figure, axes = _figure()
        when = _dates(times.end)
        dots = slice(None, None, 1 + len(when) // 1500)  # more dots than pixels only make the file large
        for seconds, name, colour in (
            (times.latency, "since its first tuple", _SERIES[0]),
            (times.lag, "since its end", _SERIES[1]),
        ):
            values = seconds * scale
            axes.plot(when[dots], values[dots], ".", markersize=2.5, color=colour, alpha=0.35)
            axes.plot(when, _smooth(values), color=colour, label=name)
        axes.set(ylabel=unit, ylim=(0, None))
        _date_axis(axes)
        _legend(axes)
        return _svg(figure)


def drops(batches: Sequence[BatchMetrics]) -> str:
    """The share of rows dropped so far against the budget, and below it the slack that the policy chose."""
    timed = [metrics for metrics in batches if metrics.newest is not None]
    when = _dates(np.array([metrics.newest for metrics in timed]))
    with _styled():
        figure = Figure(figsize=(_WIDTH, 3.9), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        ratio = np.array([metrics.drop_ratio for metrics in timed]) * 100
        above.plot(when, ratio, color=_SERIES[0], label="late rows so far, dropped")
        budget = timed[-1].drop_budget
        if budget is not None:
            above.axhline(budget * 100, color=_BAD, linestyle=(0, (5, 3)), label="budget")
        above.set(ylabel="% of rows", ylim=(0, None))
        _legend(above)
        slack = np.array([(metrics.slack or 0) / 3.6e9 for metrics in timed])
        below.plot(when, slack, color=_SERIES[1], drawstyle="steps-post")
        below.set(ylabel="waiting (h)", ylim=(0, None))
        _date_axis(below)
        return _svg(figure)


def sizes(fronts: FrontSizes) -> str:
    """Rows of the answer over time, one line per group; a day's mean where there are many windows."""
    groups = sorted(set(fronts.group))[: len(_SERIES)]
    with _styled():
        figure, axes = _figure()
        names = np.array(fronts.group)
        for group, colour in zip(groups, _SERIES, strict=False):
            mine = names == group
            axes.plot(
                _dates(fronts.end[mine]), _smooth(fronts.row_counts[mine].astype(float)), color=colour, label=group
            )
        axes.set(ylabel="rows of the front", ylim=(0, None))
        _date_axis(axes)
        if len(groups) > 1:
            _legend(axes)
        return _svg(figure)


def front(chosen: Example, criteria: Sequence[Criterion]) -> str:
    """Two criteria against each other for each pair with the first one: the front over everything in the window."""
    first, *others = criteria
    with _styled():
        figure = Figure(figsize=(_WIDTH, 0.6 + 2.5 * len(others)), layout="constrained")
        panels = np.atleast_1d(figure.subplots(len(others), 1, sharex=True))
        for axes, other in zip(panels, others, strict=True):
            if chosen.everything is not None:
                x, y = (_numbers(chosen.everything, c) for c in (first, other))
                axes.plot(x, y, ".", markersize=4, color=_MUTED, alpha=0.35, label="all rows of the window")
            x, y = (_numbers(chosen.front, c) for c in (first, other))
            axes.plot(x, y, "o", markersize=6, markerfacecolor=_SERIES[0], markeredgecolor=_PAPER, label="the front")
            axes.set_ylabel(_aimed(other))
        panels[-1].set_xlabel(_aimed(first))
        _legend(panels[0])
        return _svg(figure)


def stages(batches: Sequence[BatchMetrics]) -> str:
    """Where a batch's time goes: the median seconds of each step."""
    steps = [name for name in batches[-1].seconds if name != "total"]
    medians = [float(np.median([metrics.seconds.get(name, 0.0) for metrics in batches])) for name in steps]
    with _styled():
        figure = Figure(figsize=(_WIDTH, 0.5 + 0.38 * len(steps)), layout="constrained")
        axes = figure.subplots()
        bars = axes.barh(
            [_STEPS.get(name, name) for name in steps], np.array(medians) * 1e3, color=_SERIES[0], height=0.62
        )
        axes.bar_label(bars, fmt="%.0f ms", padding=4, color=_INK)
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.margins(x=0.16)
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        return _svg(figure)


def _aimed(criterion: Criterion) -> str:
    return f"{criterion.label}, {criterion.good} is better"


def _styled() -> AbstractContextManager[None]:
    return mpl.rc_context(_STYLE)


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH, 3.0), layout="constrained")
    return figure, figure.subplots()


def _dates(times: IntArray) -> FloatArray:
    days: FloatArray = times / 86_400e6
    return days


def _date_axis(axes: Axes) -> None:
    locator = dates.AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _legend(axes: Axes) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=4, borderaxespad=0, handlelength=1.4)


def _thousands(value: float, _: object = None) -> str:
    return f"{value:,.0f}"


def _smooth(values: FloatArray) -> FloatArray:
    """Return the running median over about a sixtieth of the values: the line through the dots."""
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


def _svg(figure: Figure) -> str:
    """Return the figure as an SVG element, without XML header, coloured by the page's variables."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg[svg.index("<svg") :]
