"""What the report's figures are drawn on: SVG that takes its colours from the page it stands in.

matplotlib draws with stand-in colours, which are then replaced by CSS variables: one figure serves light and dark.
Figures are narrow, so that their text is still read on a phone.
"""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: stand-in colour -> CSS variable of the page
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
    "svg.fonttype": "none",  # text stays text: searchable, in the page's font
    "svg.hashsalt": "skypane",  # equal figures give equal bytes
    "text.parse_math": False,  # names of columns and groups are the user's: "$" is a letter of theirs
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
#: numbers of more places than a screen shows: a hundredth of a point will do
_LONG = re.compile(r"(\d\.\d\d)\d+")
#: of a figure, in inches
WIDTH = 5.2


def styled() -> AbstractContextManager[None]:
    """Return the setting in which figures are drawn."""
    return mpl.rc_context(_STYLE)


def legend(axes: Axes) -> None:
    """Say above the axes what the lines are."""
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=4, borderaxespad=0, handlelength=1.4)


def as_svg(figure: Figure) -> str:
    """Return the figure as an SVG element, without XML header, coloured by the page's variables."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = _LONG.sub(r"\1", text.getvalue())
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg[svg.index("<svg") :]
