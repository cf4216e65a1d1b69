"""A figure of small panels in rows, in each of which one parameter varies."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, RED, GREEN, GREY = "#1b6ca8", "#d1495b", "#3a7d44", "#8a8f98"

_STYLE: Any = {
    "svg.hashsalt": "skypane",  # equal figures give equal bytes
    "svg.fonttype": "none",  # keep text as text, which takes a tenth of the bytes
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#e2e2e2",
    "grid.linewidth": 0.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "font.size": 8,
}
_PANEL = (3.15, 1.75)
_DPI = 110
_PLACES = re.compile(r' (?:d|x|y|x1|x2|y1|y2)="[^"]*"')
_NUMBER = re.compile(r"(\d+\.\d\d)\d+")


@dataclass(frozen=True)
class Panel:
    """One setting: what it is called, and what draws it. x, y: labels of its own, where it differs from its row."""

    title: str
    draw: Callable[[Axes], None]
    x: str | None = None
    y: str | None = None


@dataclass(frozen=True)
class Row:
    """Panels that differ in one parameter. share_y: one scale for all of them; from_zero: which begins at zero."""

    panels: Sequence[Panel]
    x: str
    y: str
    share_y: bool = True
    from_zero: bool = True


@dataclass(frozen=True)
class Plate:
    """One figure of the page: `name` is its file's, `text` says in Markdown what each row turns."""

    name: str
    title: str
    text: str
    rows: Sequence[Row]
    height: float = 1.0

    def write(self, folder: Path) -> Path:
        """Write the figure as SVG; on a light ground, so that it is read on any page."""
        path = folder / f"workload-{self.name}.svg"
        with mpl.rc_context(_STYLE):
            figure = self.figure()
            drawn = StringIO()
            figure.savefig(drawn, format="svg", dpi=_DPI, metadata={"Date": None})
        path.write_text(_shortened(drawn.getvalue()), encoding="utf-8")
        return path

    def figure(self) -> Figure:
        """Return the figure."""
        across = max(len(row.panels) for row in self.rows)
        size = (_PANEL[0] * across, _PANEL[1] * self.height * len(self.rows) + 0.1)
        figure = Figure(figsize=size, layout="constrained")
        for index, row in enumerate(self.rows):
            _draw(figure, row, (len(self.rows), across), index)
        return figure


def _shortened(svg: str) -> str:
    """Return the figure with places written to a hundredth of a point, which no eye can tell from a millionth."""
    return _PLACES.sub(lambda places: _NUMBER.sub(r"\1", places[0]), svg)


def _draw(figure: Figure, row: Row, shape: tuple[int, int], index: int) -> None:
    first: Axes | None = None
    for column, panel in enumerate(row.panels):
        axes = figure.add_subplot(*shape, index * shape[1] + column + 1, sharey=first if row.share_y else None)
        panel.draw(axes)
        axes.set_title(panel.title, loc="left")
        if axes.get_yscale() == "linear" and axes.get_xscale() == "linear":
            axes.locator_params(nbins=5)
        axes.minorticks_off()
        if row.from_zero and not row.share_y:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(panel.x or row.x)
        if first is None or panel.y is not None:
            axes.set_ylabel(panel.y or row.y)
        if first is None:
            first = axes
        elif row.share_y:
            axes.tick_params(labelleft=False)
    if first is not None and row.share_y and row.from_zero:
        first.set_ylim(bottom=0)  # last, because it stops the scale from following the panels
