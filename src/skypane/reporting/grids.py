"""Answers per cell of a grid, prepared for maps: some windows, with the values of each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.types import BoolArray, FloatArray, IntArray, Micros

SERIES = 6
"""Number of windows in a series."""
_BEYOND = 0.02
"""Share of the values at each end that lie outside the range of shades."""


@dataclass(frozen=True)
class GridSpec:
    """What to draw of answers whose keys are cells of a grid.

    x, y    integer columns with a cell's coordinates, to the right and upwards
    shade   columns by which cells are shaded, and which end of each is dark
    mark    a column that is true or positive for marked cells; "" for none
    places  names, and their positions on the grid
    """

    x: str
    y: str
    shade: Mapping[str, Literal["high", "low"]]
    mark: str = ""
    places: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Panel:
    """The cells of one window; arrays of shape (n,)."""

    start: Micros
    end: Micros
    x: IntArray
    y: IntArray
    values: Mapping[str, FloatArray]
    marked: BoolArray


@dataclass(frozen=True, eq=False)
class GridMap:
    """One window in full and several over the run, with the range of values of each column, by which cells are shaded.

    One value in fifty is outside the range at each end, so that outliers do not reduce the contrast of all other cells.
    """

    spec: GridSpec
    panel: Panel
    series: tuple[Panel, ...]
    ranges: Mapping[str, tuple[float, float]]

    @property
    def bounds(self) -> tuple[int, int, int, int]:
        """Least and largest x, then least and largest y, over all cells."""
        panels = (self.panel, *self.series)
        x, y = (np.concatenate([getattr(panel, axis) for panel in panels]) for axis in "xy")
        return int(x.min()), int(x.max()), int(y.min()), int(y.max())


def grid_map(windows: pa.Table, spec: GridSpec) -> GridMap | None:
    """Return the map of answers, with the window that has most marked cells, or most cells, in full.

    Cells whose x or y is null are left out. Return None if no cell remains.
    """
    placed = windows.filter(pc.and_(windows[spec.x].is_valid(), windows[spec.y].is_valid()))
    if not placed.num_rows:
        return None
    ends = pc.cast(placed["window_end"], pa.timestamp("us")).cast(pa.int64()).to_numpy()
    times, cells = np.unique(ends, return_counts=True)
    marks = np.array([_marked(placed, spec)[ends == time].sum() for time in times]) if spec.mark else cells
    best = times[np.lexsort((times, -cells, -marks))[0]]
    chosen = times[np.unique(((np.arange(SERIES) + 0.5) / SERIES * len(times)).astype(np.int64))]
    panel, *series = (_panel(placed.filter(pa.array(ends == time)), spec) for time in (best, *chosen))
    return GridMap(spec, panel, tuple(series), {name: _range([panel, *series], name) for name in spec.shade})


def _panel(rows: pa.Table, spec: GridSpec) -> Panel:
    start, end = (
        int(pc.cast(rows[name][0], pa.timestamp("us")).cast(pa.int64()).as_py())
        for name in ("window_start", "window_end")
    )
    x, y = (rows[name].cast(pa.int64()).to_numpy() for name in (spec.x, spec.y))
    values = {name: rows[name].cast(pa.float64()).to_numpy() for name in spec.shade}
    return Panel(start, end, x, y, values, _marked(rows, spec))


def _marked(rows: pa.Table, spec: GridSpec) -> BoolArray:
    if not spec.mark:
        return np.zeros(rows.num_rows, np.bool_)
    return np.asarray(pc.fill_null(rows[spec.mark].cast(pa.float64()), 0.0).to_numpy() > 0)


def _range(panels: Sequence[Panel], name: str) -> tuple[float, float]:
    values = np.concatenate([panel.values[name] for panel in panels])
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, (_BEYOND, 1 - _BEYOND)) if len(known) else (0.0, 0.0)
    return float(low), float(high)
