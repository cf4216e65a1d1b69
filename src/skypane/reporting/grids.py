"""Answers per cell of a grid, as a map needs them: some windows, and in each what is known of every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.types import BoolArray, FloatArray, IntArray, Micros

SERIES = 6
"""Windows of a series, one beside the other."""
_BEYOND = 0.02


@dataclass(frozen=True)
class GridSpec:
    """What is drawn of answers whose keys are cells of a grid.

    x, y    columns with a cell's whole numbers, to the right and upwards
    shade   columns that shade a cell, and which end of each is dark
    mark    a column that is true, or above zero, where a cell is marked; "" for none
    places  names, and where they stand on the grid
    """

    x: str
    y: str
    shade: Mapping[str, Literal["high", "low"]]
    mark: str = ""
    places: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Panel:
    """One window's cells, (n,) each."""

    start: Micros
    end: Micros
    x: IntArray
    y: IntArray
    values: Mapping[str, FloatArray]
    marked: BoolArray


@dataclass(frozen=True, eq=False)
class GridMap:
    """One window in full, and several over the run; `ranges` are, by column, the values of all of these but for the outermost.

    One value in fifty is beyond them at each end: single cells do not take the shades from all others.
    """

    spec: GridSpec
    panel: Panel
    series: tuple[Panel, ...]
    ranges: Mapping[str, tuple[float, float]]

    @property
    def bounds(self) -> tuple[int, int, int, int]:
        """Least and largest x, least and largest y, of any cell."""
        panels = (self.panel, *self.series)
        x, y = (np.concatenate([getattr(panel, axis) for panel in panels]) for axis in "xy")
        return int(x.min()), int(x.max()), int(y.min()), int(y.max())


def grid_map(windows: pa.Table, spec: GridSpec) -> GridMap | None:
    """Return the map of answers: in full the window with the most marked cells, or the most cells; None without any.

    Cells without a place are not on it.
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
