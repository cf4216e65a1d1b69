"""Draw the plots of a figure with matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from skypane_papers.figure import Plot
from skypane_papers.rows import only

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "skypane",  # equal figures give equal bytes
    "font.size": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "0.9",
    "legend.frameon": False,
    "lines.linewidth": 1.4,
}


def draw(plot: Plot, rows: pd.DataFrame, file: Path) -> None:
    """Write a plot in the format of the file's extension (svg, png, pdf)."""
    rows = only(rows, **plot.where)
    with mpl.rc_context(_STYLE):
        canvas = Canvas(figsize=(5.2, 3.2), layout="constrained")
        axes = canvas.add_subplot()
        if plot.bars:
            _bars(axes, plot, rows)
        else:
            _lines(axes, plot, rows)
        if plot.level is not None:
            axes.axhline(plot.level, color="0.4", linestyle="--", linewidth=1)
        if "x" in plot.log:
            axes.set_xscale("log")
        if "y" in plot.log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
        axes.set(title=plot.title, xlabel=plot.x, ylabel=plot.y)
        canvas.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def _lines(axes: Axes, plot: Plot, rows: pd.DataFrame) -> None:
    if plot.by is None:
        axes.plot(rows[plot.x], rows[plot.y], marker=".")
        return
    for label, group in rows.groupby(plot.by, sort=False):
        axes.plot(group[plot.x], group[plot.y], marker=".", label=str(label))
    axes.legend(title=plot.by)


def _bars(axes: Axes, plot: Plot, rows: pd.DataFrame) -> None:
    """Draw one group of bars per x, with one bar per value of `by`."""
    labels = list(dict.fromkeys(rows[plot.x]))
    groups = [("", rows)] if plot.by is None else list(rows.groupby(plot.by, sort=False))
    width = 0.8 / len(groups)
    for index, (label, group) in enumerate(groups):
        places = [labels.index(x) + (index + 0.5) * width - 0.4 for x in group[plot.x]]
        axes.bar(places, group[plot.y], width, label=str(label))
    axes.set_xticks(range(len(labels)), [str(label) for label in labels])
    if plot.by is not None:
        axes.legend(title=plot.by)
