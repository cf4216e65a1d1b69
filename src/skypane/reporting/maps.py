"""Maps of answers per cell of a grid: one large map per shading column, and small maps of windows over the run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from skypane.reporting.canvas import BAD, GRID, INK, MUTED, PAPER, SERIES, WIDTH, as_svg, styled
from skypane.reporting.grids import GridMap, Panel
from skypane.types import BoolArray, FloatArray, IntArray

_SHADES: Final = (0.10, 0.24, 0.40, 0.58, 0.78, 1.0)
"""Opacity of a cell by its step; the steps are distinguishable on light and dark backgrounds."""
_WIDE: Final = 20.0
"""Ratio of the largest to the least value from which steps are logarithmic."""
_GAP: Final = 0.06
"""Share of a cell that is left empty at each side, so that the grid is visible."""


def shaded(grid: GridMap, name: str) -> str:
    """Draw one window: cells shaded by a column, marked cells framed, places named, and a key."""
    colour = SERIES[list(grid.spec.shade).index(name) % len(SERIES)]
    left, right, low, high = grid.bounds
    with styled():
        height = WIDTH * (high - low + 1) / (right - left + 1)
        figure = Figure(figsize=(WIDTH, height + 0.5), layout="constrained")
        above, axes = figure.subplots(2, 1, height_ratios=(0.32, height))
        _key(above, grid, name, colour)
        _draw(axes, grid, grid.panel, name, colour)
        for place, (x, y) in grid.spec.places.items():
            axes.plot([x], [y], "o", markersize=5, color=INK, markeredgecolor=PAPER)
            under = {"facecolor": PAPER, "alpha": 0.75, "edgecolor": "none", "pad": 0.8}
            axes.annotate(place, (x, y), (7, 7), textcoords="offset points", color=INK, fontweight="bold", bbox=under)
        return as_svg(figure)


def small(grid: GridMap, panel: Panel) -> str:
    """Draw one window of the series, shaded by the last shading column, without a key."""
    name = list(grid.spec.shade)[-1]
    colour = SERIES[(len(grid.spec.shade) - 1) % len(SERIES)]
    left, right, low, high = grid.bounds
    with styled():
        figure = Figure(figsize=(2.0, 0.3 + 2.0 * (high - low + 1) / (right - left + 1)), layout="constrained")
        axes = figure.subplots()
        _draw(axes, grid, panel, name, colour, frame=0.9)
        axes.set_title(f"{datetime.fromtimestamp(panel.end / 1e6, UTC):%H:%M}", color=MUTED, fontsize=10.5)
        return as_svg(figure)


def steps_of(values: FloatArray, least: float, largest: float, dark: str) -> IntArray:
    """Return the step of each value, 0 (light) to 5 (dark), logarithmic for a wide range; -1 for NaN and infinities."""
    lo, hi, scaled = least, largest, values
    if least > 0 and largest / least >= _WIDE:
        lo, hi, scaled = np.log(least), np.log(largest), np.log(np.maximum(values, least))
    share = (scaled - lo) / (hi - lo) if hi > lo else np.ones_like(scaled)
    share = 1 - share if dark == "low" else share
    known = np.isfinite(share)
    steps = np.clip(np.floor(np.where(known, share, 0.0) * len(_SHADES)), 0, len(_SHADES) - 1).astype(np.int64)
    return np.where(known, steps, -1)


def _draw(axes: Axes, grid: GridMap, panel: Panel, name: str, colour: str, frame: float = 1.5) -> None:
    left, right, low, high = grid.bounds
    steps = steps_of(panel.values[name], *grid.ranges[name], grid.spec.shade[name])
    for step, shade in enumerate(_SHADES):
        _cells(axes, panel, steps == step, facecolor=colour, alpha=shade, linewidth=0)
    _cells(axes, panel, panel.marked, facecolor="none", edgecolor=BAD, linewidth=frame, joinstyle="round")
    axes.set(xlim=(left - 0.3, right + 1.3), ylim=(low - 0.3, high + 1.3), aspect="equal", xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.add_patch(
        Rectangle((left - 0.25, low - 0.25), right - left + 1.5, high - low + 1.5, fill=False, edgecolor=GRID)
    )


def _cells(axes: Axes, panel: Panel, which: BoolArray, **style: object) -> None:
    """Draw all cells as one shape, so that a page with thousands of them stays small."""
    if not which.any():
        return
    square = np.array([[_GAP, _GAP], [1 - _GAP, _GAP], [1 - _GAP, 1 - _GAP], [_GAP, 1 - _GAP], [_GAP, _GAP]])
    corners = np.stack([panel.x[which], panel.y[which]], axis=1)
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    path = Path((corners[:, None, :] + square).reshape(-1, 2), codes * len(corners))
    axes.add_patch(PathPatch(path, **style))


def _key(axes: Axes, grid: GridMap, name: str, colour: str) -> None:
    """Draw the key: squares from light to dark with the values at both ends, and the meaning of a frame."""
    least, largest = grid.ranges[name]
    ends = (least, largest) if grid.spec.shade[name] == "high" else (largest, least)
    axes.set(xlim=(0, 30), ylim=(0, 2))
    axes.set_axis_off()
    axes.text(0, 1, name.replace("_", " "), va="center", color=INK, fontweight="bold")
    axes.text(9.4, 1, _number(ends[0]), va="center", ha="right", color=MUTED)
    for step, shade in enumerate(_SHADES):
        axes.add_patch(Rectangle((9.8 + step, 0.5), 0.9, 1.0, facecolor=colour, alpha=shade, linewidth=0))
    axes.text(16.0, 1, _number(ends[1]), va="center", color=MUTED)
    if grid.panel.marked.any():
        axes.add_patch(Rectangle((21.2, 0.5), 0.9, 1.0, fill=False, edgecolor=BAD, linewidth=1.5))
        axes.text(22.6, 1, grid.spec.mark.replace("_", " "), va="center", color=MUTED)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
