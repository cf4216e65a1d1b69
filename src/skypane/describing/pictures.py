"""Three plots of a stream: its rate over time, its delays, its dispersion over scale."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skypane.describing.columns import Stream
from skypane.reporting.style import PLAIN
from skypane.types import ConfigError, FloatArray, IntArray
from skypane.workloads.estimators import Dispersion, dispersion, dispersion_of_counts

_BLUE, _RED = "#1b6ca8", "#d1495b"
_SLOTS = 300
_POINTS = 200
_SECOND = 1_000_000
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body{{font:15px sans-serif;margin:2rem}}svg{{max-width:100%;height:auto}}</style></head>
<body><h1>{title}</h1>{svg}</body></html>
"""


def draw(stream: Stream, path: Path, title: str) -> None:
    """Write the plots of a stream as SVG, or as a page of HTML with them in it, as the file's name ends."""
    clock = stream.clock
    edges = np.linspace(clock[0], clock[-1] + 1, _SLOTS + 1)
    rate = np.histogram(clock, edges)[0] / (np.diff(edges) / _SECOND)
    try:
        curve = dispersion(clock)
    except ConfigError:
        curve = None  # too short a stream to say anything about scale
    _write(path, title, (edges - edges[0]) / _SECOND, rate, stream.delay, curve)


def draw_counts(series: IntArray, path: Path, title: str) -> None:
    """Write the plots of tuples per second, of which no delays are known."""
    try:
        curve = dispersion_of_counts(series, 1.0)
    except ConfigError:
        curve = None
    edges = np.arange(len(series) + 1, dtype=np.float64)
    _write(path, title, edges, series.astype(np.float64), None, curve)


def _write(
    path: Path, title: str, edges: FloatArray, rate: FloatArray, delay: IntArray | None, curve: Dispersion | None
) -> None:
    with mpl.rc_context(PLAIN):
        figure = Figure(figsize=(11, 3.2), layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.6, 1, 1))
        _rate(left, edges, rate)
        _delays(middle, delay)
        _scales(right, curve)
        figure.suptitle(title)
        drawn = StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    svg = drawn.getvalue()
    if path.suffix == ".html":
        svg = _PAGE.format(title=title, svg=svg[svg.index("<svg") :])
    try:
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error


def _rate(axes: Axes, edges: FloatArray, rate: FloatArray) -> None:
    axes.stairs(rate, edges, fill=True, color=_BLUE, linewidth=0)
    axes.axhline(float(np.average(rate, weights=np.diff(edges))), color=_RED, linewidth=0.9)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds since the first")
    axes.set_ylabel("tuples/s (line: mean)")


def _delays(axes: Axes, delay: IntArray | None) -> None:
    axes.set_xlabel("delay, s")
    axes.set_ylabel("share of rows later than that")
    if delay is None or not np.any(delay > 0):
        axes.text(0.5, 0.5, "no delays", ha="center", transform=axes.transAxes)
        return
    later = np.geomspace(1 / len(delay), 1, _POINTS)
    axes.plot(np.quantile(delay, 1 - later) / _SECOND, later, color=_BLUE)
    axes.set_yscale("log")
    axes.set_xscale("symlog", linthresh=max(float(np.quantile(delay[delay > 0], 0.1)) / _SECOND, 1e-6))


def _scales(axes: Axes, curve: Dispersion | None) -> None:
    axes.set_xlabel("length of interval, s")
    axes.set_ylabel("variance / mean of counts")
    if curve is None:
        axes.text(0.5, 0.5, "too short to tell", ha="center", transform=axes.transAxes)
        return
    axes.plot(curve.intervals, curve.ratios, color=_BLUE, marker=".")
    axes.set_xscale("log")
    axes.set_yscale("log")
    if curve.stable:
        axes.axvline(curve.seconds, color=_RED, linewidth=0.9)
        axes.axhline(curve.value, color=_RED, linewidth=0.9)
