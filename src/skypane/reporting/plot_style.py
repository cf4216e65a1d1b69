"""Style of stand-alone plots: plain axes, and a grid behind the lines; and the axis with dates of all plots."""

from __future__ import annotations

from typing import Any

from matplotlib import dates
from matplotlib.axes import Axes

PLAIN: Any = {
    "svg.hashsalt": "skypane",  # equal figures give equal bytes
    "text.parse_math": False,  # labels may contain "$"
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "font.size": 9,
}


def date_axis(axes: Axes) -> None:
    """Label the horizontal axis, in days since 1970, with dates and times."""
    locator = dates.AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
