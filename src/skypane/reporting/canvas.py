"""Style of the report's figures: SVG elements that take their colours from the page.

Matplotlib draws with placeholder colours, which are then replaced by CSS variables, so that one figure serves light
and dark pages. Figures are narrow, so that their text is legible on a phone.
"""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: placeholder colours, which _VARIABLES maps to CSS variables of the page
INK, MUTED, GRID, PAPER = "#010203", "#010204", "#010205", "#010206"
SERIES = ("#010301", "#010302", "#010303", "#010304", "#010305")
BAD = "#010401"
_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
    BAD: "--bad",
    **{colour: f"--series-{i + 1}" for i, colour in enumerate(SERIES)},
}
_STYLE: Any = {
    "svg.fonttype": "none",  # keep text as text: searchable and in the page's font
    "svg.hashsalt": "skypane",  # equal figures give equal bytes
    "text.parse_math": False,  # names of columns and groups may contain "$"
    "font.size": 10.5,
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}
#: numbers with more than two decimals, which are cut: a screen shows no more
_LONG = re.compile(r"(\d\.\d\d)\d+")
#: width of a figure in inches
WIDTH = 5.2


def styled() -> AbstractContextManager[None]:
    """Return a context in which figures are drawn in this style."""
    return mpl.rc_context(_STYLE)


def legend(axes: Axes) -> None:
    """Add the legend above the axes."""
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=4, borderaxespad=0, handlelength=1.4)


def as_svg(figure: Figure) -> str:
    """Return the figure as an SVG element, without XML header, with the page's variables as colours."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = _LONG.sub(r"\1", text.getvalue())
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg[svg.index("<svg") :]
