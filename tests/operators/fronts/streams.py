"""Streams of points with the cases that are hard: many at one instant, equal points, gaps as long as the window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.kernels.strategies import ODD_VALUES
from tests.operators.fronts.eager import Update

from skypane.operators.fronts import ADD, DEL, Front, NewPoints, Updates, stays


class Stream(NamedTuple):
    points: np.ndarray
    times: np.ndarray  # ascending
    window: int


@st.composite
def streams(draw, max_points=25, max_columns=4):
    n = draw(st.integers(0, max_points))
    d = draw(st.integers(1, max_columns))
    values = st.one_of(st.integers(0, 3).map(float), st.sampled_from(ODD_VALUES))
    points = draw(hnp.arrays(np.float64, (n, d), elements=values))
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5, 10, 11, 40]), min_size=n, max_size=n))
    return Stream(
        points, draw(st.integers(-50, 50)) + np.cumsum(gaps, dtype=np.int64), draw(st.sampled_from([1, 2, 10]))
    )


def plain(updates: Updates) -> list[Update]:
    return [Update(*row) for row in zip(*(column.tolist() for column in updates), strict=True)]


def history_of(stream: Stream) -> list[Update]:
    """The stays of a table's rows, as updates."""
    history = stays(*stream)
    ends = [(history.starts, ADD), (history.ends, DEL)]
    return sorted(
        Update(time, action, row)
        for times, action in ends
        for time, row in zip(times.tolist(), history.rows.tolist(), strict=True)
    )


def told(stream: Stream, cuts: list[int]) -> list[Update]:
    """All updates of a front that takes the stream cut at some times."""
    points, times, window = stream
    front = Front(points.shape[1], window)
    end = int(times.max(initial=0)) + window + 1
    updates = []
    for cut in [*sorted(cut for cut in cuts if cut < end), end]:
        rows = np.flatnonzero((front.clock <= times) & (times < cut))
        updates += plain(front.step(NewPoints(points[rows], times[rows], rows), cut))
    return updates
