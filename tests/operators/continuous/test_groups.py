from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.continuous import naive
from tests.operators.continuous.streams import Stream, plain, streams

from skypane.operators.continuous import Arrivals, GroupedFronts
from skypane.operators.continuous.eager import Update


@given(streams(), st.data(), st.lists(st.integers(-60, 400), max_size=4))
def test_each_group_has_the_front_of_its_own_rows_also_through_snapshots(stream, data, cuts):
    points, times, window = stream
    d = points.shape[1]
    n = len(times)
    groups = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)), np.int64)
    expected = []
    for group in set(groups.tolist()):
        rows = np.flatnonzero(groups == group)
        part = naive.updates(*Stream(points[rows], times[rows], window))
        expected += [Update(u.time, u.action, int(rows[u.row])) for u in part]
    fronts = GroupedFronts(d, window)
    updates = []
    end = int(times.max(initial=0)) + window + 1
    for until in [*sorted(cut for cut in cuts if cut < end), end]:
        rows = np.flatnonzero((fronts.clock <= times) & (times < until))
        updates += plain(fronts.step(Arrivals(points[rows], times[rows], rows), groups[rows], until))
        fronts = GroupedFronts.restore(fronts.snapshot(), d, window, fronts.clock)
    assert updates == sorted(expected)
    assert not fronts.snapshot()
    assert fronts.current().tolist() == []
