from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.fronts import naive
from tests.operators.fronts.eager import Update
from tests.operators.fronts.streams import Stream, plain, streams

from skypane.operators.fronts import GroupedFronts, NewPoints, small_fronts
from skypane.operators.fronts import grouped_fronts as groups_module
from skypane.operators.fronts.fronts import Fronts, ShardPlan


@pytest.mark.parametrize("large", [2, 10**6], ids=["most groups large", "all groups small"])
@given(streams(), st.data(), st.lists(st.integers(-60, 400), max_size=4))
def test_each_group_has_the_front_of_its_own_rows_large_or_small_in_any_number_of_shards(large, stream, data, cuts):
    points, times, window = stream
    n = len(times)
    groups = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64)
    expected = []
    for group in set(groups.tolist()):
        rows = np.flatnonzero(groups == group)
        part = naive.updates(*Stream(points[rows], times[rows], window))
        expected += [Update(u.time, u.action, int(rows[u.row])) for u in part]
    fronts = Fronts(points.shape[1], window, grouped=True)
    updates: list[Update] = []
    there: set[int] = set()
    end = int(times.max(initial=0)) + window + 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(groups_module, "LARGE", large)
        patched.setattr(small_fronts, "_LEAST_SPARE", data.draw(st.sampled_from([0, 4_096])))
        for until in [*sorted(cut for cut in cuts if cut < end), end]:
            rows = np.flatnonzero((fronts.clock <= times) & (times < until))
            asking = ShardPlan(data.draw(st.integers(0, 3)))
            news = plain(fronts.step(NewPoints(points[rows], times[rows], rows), groups[rows], until, asking))
            for update in news:
                (there.add if update.action > 0 else there.remove)(update.row)
            updates += news
            assert fronts.current().tolist() == sorted(there)
            assert there <= set(fronts.kept().tolist())
            if data.draw(st.booleans()):
                fronts = Fronts.restore(*fronts.snapshot(), window)
    assert updates == sorted(expected)
    assert len(fronts) == 0
    assert fronts.current().tolist() == []


def test_a_step_that_is_refused_leaves_the_fronts_as_they_were():
    fronts = GroupedFronts(1, 10)
    one, group = np.array([[1.0]]), np.array([7])
    fronts.step(NewPoints(one, np.array([3]), np.array([0])), group, 5)
    with pytest.raises(ValueError, match=r"times must be in \[5, 9\), got 4"):
        fronts.step(NewPoints(one, np.array([4]), np.array([1])), group, 9)
    assert fronts.current().tolist() == [0]
