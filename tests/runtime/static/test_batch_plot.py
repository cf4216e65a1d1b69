"""The figure of a query's batches has the figures of its metrics."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.axes import Axes
from tests.reporting.made import hourly

from skypane.runtime.batch_plot import batch_plot


def points(axes: Axes, line: int = 0) -> list[float]:
    return [float(y) for y in np.asarray(axes.lines[line].get_ydata(), float)]


@pytest.mark.parametrize("count", [1, 7])
def test_each_batch_is_a_point_of_each_line(count: int):
    batches = hourly(count)
    assert {axes.get_ylabel(): points(axes) for axes in batch_plot(batches).axes} == {
        "rows": [100.0] * count,
        "seconds": [0.5] * count,
        "late rows, %": pytest.approx([100 * metrics.dropped_rows / metrics.seen_rows for metrics in batches]),
    }


def test_the_budget_is_a_second_line():
    *_, late = batch_plot(hourly(3)).axes
    assert points(late, 1) == [1.0, 1.0]


def test_a_cell_shows_it_as_svg():
    root = ET.fromstring(batch_plot(hourly(3))._repr_svg_())  # noqa: S314 - our own text
    assert root.tag.endswith("svg")
