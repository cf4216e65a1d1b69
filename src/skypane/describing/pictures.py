"""Three plots of a stream: its rate over time, its delays, and its dispersion over interval lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skypane.describing import years
from skypane.describing.columns import RecordedStream
from skypane.naming import shortened
from skypane.reporting.plot_style import PLAIN, date_axis
from skypane.types import ConfigError, FloatArray, IntArray, Micros
from skypane.workloads.estimators import Dispersion, dispersion, dispersion_of_counts

#: extensions of the names of plot files
FORMATS = (".svg", ".png", ".pdf", ".html")

_BLUE, _RED = "#1b6ca8", "#d1495b"
_SLOTS = 300
_POINTS = 200
_SECOND = 1_000_000
_DAY = 86_400
_DPI = 160
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body{{font:15px sans-serif;margin:2rem}}svg{{max-width:100%;height:auto}}</style></head>
<body><h1>{title}</h1>{svg}</body></html>
"""


@dataclass(frozen=True, eq=False)
class _Rate:
    """Tuples per second in n slots of time; `edges`, (n + 1,), are in seconds since the first tuple."""

    edges: FloatArray
    per_second: FloatArray
    #: the time of the first tuple, if times are dates
    start: Micros | None = None


def check_format(path: Path) -> None:
    """Raise ConfigError if the extension of the file's name is not one of FORMATS."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"need a plot that ends in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, got {path}")


def draw(stream: RecordedStream, path: Path, title: str) -> None:
    """Write the plots of a stream with at least one row, in the format of the file's extension (see FORMATS)."""
    clock = stream.clock
    slots = max(1, min(_SLOTS, int(clock[-1] - clock[0])))
    edges = (np.linspace(0, clock[-1] - clock[0] + 1, slots + 1)) / _SECOND
    row_counts = np.histogram((clock - clock[0]) / _SECOND, edges)[0]
    start = int(clock[0]) if years.credible(int(clock[0]), int(clock[-1])) else None
    _write(
        path, title, _Rate(edges, row_counts / np.diff(edges), start), stream.delay, _curve(lambda: dispersion(clock))
    )


def draw_counts(series: IntArray, path: Path, title: str) -> None:
    """Write the plots of a series of tuples per second, without dates and delays."""
    edges = np.unique(np.linspace(0, len(series), min(_SLOTS, len(series)) + 1).astype(np.int64))
    sums = np.add.reduceat(series, edges[:-1]).astype(np.float64)
    rate = _Rate(edges.astype(np.float64), sums / np.diff(edges))
    _write(path, title, rate, None, _curve(lambda: dispersion_of_counts(series, 1.0)))


def _curve(estimate: Callable[[], Dispersion]) -> Dispersion | None:
    try:
        return estimate()
    except ConfigError:
        return None  # the stream is too short to estimate dispersion


def _write(path: Path, title: str, rate: _Rate, delay: IntArray | None, curve: Dispersion | None) -> None:
    check_format(path)
    kind = path.suffix.lower().removeprefix(".")
    title = shortened(title, 80)
    with mpl.rc_context(PLAIN):
        figure = Figure(figsize=(11, 3.2), layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.6, 1, 1))
        _rate(left, rate)
        _delays(middle, delay)
        _scales(right, curve)
        figure.suptitle(title, parse_math=False)
        file = BytesIO()
        metadata = {"png": None, "pdf": {"CreationDate": None}}.get(kind, {"Date": None})
        figure.savefig(file, format="svg" if kind == "html" else kind, dpi=_DPI, metadata=metadata)
    content = file.getvalue()
    if kind == "html":
        svg = content.decode()
        content = _PAGE.format(title=escape(title), svg=svg[svg.index("<svg") :]).encode()
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error


def _rate(axes: Axes, rate: _Rate) -> None:
    edges, label = rate.edges, "seconds since the first"
    if rate.start is not None:
        edges, label = (rate.start / _SECOND + rate.edges) / _DAY, ""
        date_axis(axes)
    # With an outline, slots narrower than a pixel stay visible.
    axes.stairs(rate.per_second, edges, fill=True, color=_BLUE, linewidth=0.8)
    axes.axhline(float(np.average(rate.per_second, weights=np.diff(rate.edges))), color=_RED, linewidth=0.9)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(label)
    axes.set_ylabel("tuples/s (line: mean)")


def _delays(axes: Axes, delay: IntArray | None) -> None:
    axes.set_xlabel("delay, s")
    axes.set_ylabel("share of rows with a longer delay")
    if delay is None or not np.any(delay > 0):
        axes.text(0.5, 0.5, "no delays", ha="center", transform=axes.transAxes)
        return
    later = np.geomspace(1 / len(delay), 1, _POINTS)
    axes.plot(np.quantile(delay, 1 - later) / _SECOND, later, color=_BLUE)
    axes.set_yscale("log")
    axes.set_xscale("symlog", linthresh=max(float(np.quantile(delay[delay > 0], 0.1)) / _SECOND, 1e-6))
    if delay.min() >= 0:
        axes.set_xlim(left=0)


def _scales(axes: Axes, curve: Dispersion | None) -> None:
    axes.set_xlabel("length of interval, s")
    axes.set_ylabel("variance / mean of counts")
    if curve is None:
        axes.text(0.5, 0.5, "too short to estimate", ha="center", transform=axes.transAxes)
        return
    axes.plot(curve.intervals, curve.ratios, color=_BLUE, marker=".")
    axes.set_xscale("log")
    axes.set_yscale("log")
    if curve.stable:
        axes.axvline(curve.seconds, color=_RED, linewidth=0.9)
        axes.axhline(curve.value, color=_RED, linewidth=0.9)
