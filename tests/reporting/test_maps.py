"""A map of answers: which windows it shows, which cells are dark, and that all of them are there."""

import re

import numpy as np
import pyarrow as pa
import pytest
from tests.reporting.made import HOUR
from tests.reporting.test_report import Page, snapshot

from skypane.reporting.grids import SERIES, GridMap, GridSpec, grid_map
from skypane.reporting.maps import shaded, small, steps_of
from skypane.reporting.report import render

SPEC = GridSpec("east", "north", {"n": "high", "speed": "low"}, "stuck", {"Station & co": (1.5, 2.5)})


def answers(windows: int = 9) -> pa.Table:
    """Window i has i cells in a row, and the fifth one the most that are marked; one cell is of no place."""
    rows = [
        {
            "window_start": (i - 1) * HOUR,
            "window_end": i * HOUR,
            "east": None if place < 0 else place,
            "north": 2,
            "n": place + 1,
            "speed": None if place == 3 else 50.0 - place,
            "stuck": place < (3 if i == 5 else 1),
        }
        for i in range(1, windows + 1)
        for place in range(-1, i)
    ]
    stamps = {name: pa.timestamp("us", "UTC") for name in ("window_start", "window_end")}
    numbers = {"east": pa.int32(), "north": pa.int32(), "n": pa.int64(), "speed": pa.float64(), "stuck": pa.bool_()}
    return pa.Table.from_pylist(rows, pa.schema({**stamps, **numbers}))


def made(spec: GridSpec = SPEC) -> GridMap:
    grid = grid_map(answers(), spec)
    assert grid is not None
    return grid


def test_it_shows_the_window_with_the_most_marks_in_full_and_some_over_the_run():
    grid = made()
    assert (grid.panel.start, grid.panel.end) == (4 * HOUR, 5 * HOUR)
    assert grid.panel.x.tolist() == [0, 1, 2, 3, 4]
    assert grid.panel.marked.tolist() == [True, True, True, False, False]
    assert [panel.end // HOUR for panel in grid.series] == [1, 3, 4, 6, 7, 9]
    assert len(grid.series) == SERIES
    assert grid.bounds == (0, 8, 2, 2)


def test_without_marks_it_shows_the_window_with_the_most_cells():
    assert made(GridSpec("east", "north", {"n": "high"})).panel.end == 9 * HOUR


def test_answers_without_any_place_have_no_map():
    nowhere = answers().filter(pa.compute.is_null(answers()["east"]))
    assert nowhere.num_rows
    assert grid_map(nowhere, SPEC) is None


def test_steps_go_from_light_to_dark_and_what_lies_beyond_is_at_the_end():
    values = np.array([-5.0, 0.0, 5.9, 6.1, 11.9, 12.0, 99.0, np.nan])
    assert steps_of(values, 0.0, 12.0, "high").tolist() == [0, 0, 2, 3, 5, 5, 5, -1]
    assert steps_of(values[:-1], 0.0, 12.0, "low").tolist() == [5, 5, 3, 2, 0, 0, 0]
    assert steps_of(np.array([1.0, 10.0, 99.0, 1e6]), 1.0, 1e6, "high").tolist() == [0, 1, 1, 5]
    assert steps_of(np.array([3.0]), 3.0, 3.0, "high").tolist() == [5]


def test_every_cell_is_drawn_once_and_marked_ones_are_framed():
    grid = made()
    svg = shaded(grid, "speed")
    filled = [
        path for path in re.findall(r'<path d="([^"]*)"[^>]*fill: ?var\(--series-2\)', svg) if path.count("M") >= 1
    ]
    key = 6
    assert sum(path.count("z") for path in filled) == 4 + key  # of five cells one has no speed
    (framed,) = [
        path for path in re.findall(r'<path d="([^"]*)"[^>]*stroke: ?var\(--bad\)', svg) if path.count("z") == 3
    ]
    assert framed
    assert "Station &amp; co" in svg


def test_equal_maps_give_equal_pictures_in_the_colours_of_the_page():
    for svg, again in (
        (shaded(made(), "n"), shaded(made(), "n")),
        (small(made(), made().series[2]), small(made(), made().series[2])),
    ):
        assert svg == again
        assert not re.search(r"#0102|#0103|#0104", svg)


@pytest.mark.long
def test_the_report_begins_with_the_map():
    page = Page(render(snapshot(grid=made(), example=None)))
    assert page.headings[0] == "The map"
    assert page.tags.count("svg") == 5 + 2 + SERIES
