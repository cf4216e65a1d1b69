"""Each form of a front gives the updates of the eager algorithm, by the one protocol that all of them implement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.fronts.eager import Update, net
from tests.operators.fronts.streams import Stream, plain, streams
from tests.operators.fronts.test_eager import run
from tests.subclasses import concrete

from skypane.operators import fronts as fronts_package
from skypane.operators.fronts import ADD, Front, FrontContents, FrontOperator, GroupedFronts, NewPoints
from skypane.operators.fronts import grouped_fronts as grouped_module
from skypane.operators.fronts import small_fronts as small_module
from skypane.operators.fronts.rescalable_front import RescalableFront
from skypane.operators.fronts.resident_fronts import ResidentFront, ResidentGroups, ResidentShard
from skypane.operators.fronts.sharded_fronts import ShardedFront, ShardedGroups
from skypane.operators.fronts.shards import ShardPlan, SpanFront
from skypane.operators.fronts.small_fronts import SmallFronts
from skypane.types import BadInputError


class Form(NamedTuple):
    restore: Callable[[FrontContents, int], FrontOperator]
    grouped: bool
    #: whether rescale() can set the number of shards, and the least number of them
    least_shards: int | None = None
    #: what runs shards that stay in place; None: shards have no state
    in_place: tuple[Any, ...] = (None,)

    def new(self, d: int, window: int) -> FrontOperator:
        return self.restore(FrontContents.empty(d, grouped=self.grouped), window)

    def arrivals(self, points: Any, times: Any, rows: Any, groups: Any) -> NewPoints:
        return NewPoints(points, times, rows, groups if self.grouped else None)


FORMS = {
    "one front": Form(Front.restore, grouped=False),
    "one front in shards": Form(ShardedFront.restore, grouped=False, least_shards=1),
    "one front in shards in place": Form(ResidentFront.restore, grouped=False, least_shards=1, in_place=(map,)),
    "one front in any form": Form(RescalableFront.restore, grouped=False, least_shards=0, in_place=(None, map)),
    "small groups": Form(SmallFronts.restore, grouped=True),
    "groups": Form(GroupedFronts.restore, grouped=True),
    "groups in shards": Form(ShardedGroups.restore, grouped=True, least_shards=1),
    "groups in shards in place": Form(ResidentGroups.restore, grouped=True, least_shards=1, in_place=(map,)),
    "groups in any form": Form(RescalableFront.restore, grouped=True, least_shards=0, in_place=(None, map)),
}
by_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def eager_updates(stream: Stream, groups: np.ndarray) -> list[Update]:
    """Return the updates of the eager algorithm, of each group by itself."""
    updates = []
    for group in set(groups.tolist()):
        rows = np.flatnonzero(groups == group)
        own = net(run(Stream(stream.points[rows], stream.times[rows], stream.window)))
        updates += [Update(one.time, one.action, int(rows[one.row])) for one in own]
    return sorted(updates)


def test_all_forms_are_here():
    here = {type(form.new(1, 1)) for form in FORMS.values()}
    every = concrete(FrontOperator, fronts_package)  # type: ignore[type-abstract]
    assert here == every - {SpanFront, ResidentShard}  # parts of a front, whose points are numbered again in each step


@pytest.mark.parametrize("large", [2, 10**6], ids=["most groups large", "all groups small"])
@by_form
@given(streams(), st.data(), st.lists(st.integers(-60, 400), max_size=4))
def test_a_form_gives_the_eager_updates_wherever_the_stream_is_cut(form, large, stream, data, cuts):
    """In any order within a step, in any number of shards, and if it is restored from a snapshot of another form."""
    points, times, window = stream
    n, d = points.shape
    groups = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64) * form.grouped
    front = form.new(d, window)
    updates: list[Update] = []
    there: set[int] = set()
    end = int(times.max(initial=0)) + window + 1
    others = [other for other in FORMS.values() if other.grouped == form.grouped]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grouped_module, "LARGE", large)
        patched.setattr(small_module, "_LEAST_SPARE", data.draw(st.sampled_from([0, 4_096])))
        for until in [*sorted(cut for cut in cuts if cut < end), end]:
            inside = np.flatnonzero((front.clock <= times) & (times < until)).tolist()
            rows = np.array(data.draw(st.permutations(inside)), np.int64)
            if form.least_shards is not None:
                shards, in_place = (
                    data.draw(st.integers(form.least_shards, 3)),
                    data.draw(st.sampled_from(form.in_place)),
                )
                front.rescale(ShardPlan(shards, in_place=in_place))
            new = plain(front.step(form.arrivals(points[rows], times[rows], rows, groups[rows]), until))
            for update in new:
                (there.add if update.action == ADD else there.remove)(update.row)
            updates += new
            assert front.clock == until
            assert front.current().tolist() == sorted(there)
            assert there <= set(front.kept().tolist()) == set(front.snapshot().rows.tolist())
            assert len(front) == len(front.kept()) <= np.count_nonzero(times < until)
            if data.draw(st.booleans()):
                stored = data.draw(st.sampled_from(others)).restore(front.snapshot(), window).snapshot()
                front = form.restore(stored, window)
    assert updates == eager_updates(stream, groups)
    assert len(front) == 0
    assert front.current().tolist() == []


@by_form
@given(st.data())
def test_the_front_at_each_of_several_clocks_is_that_of_a_step_to_each(form, data):
    """Points of one time are incomparable, as the rows of a pane's skyline."""
    n, window = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 4))
    times = np.sort(np.array(data.draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)), np.int64))
    first = np.arange(n, dtype=np.float64)  # of one time, the second criterion falls as the first rises
    points = np.column_stack([first % 5 + first / 100, times % 3 - first % 5 - first / 100])
    groups = np.arange(n) % 3 * form.grouped
    clocks = sorted(data.draw(st.sets(st.integers(0, 9), min_size=1, max_size=4)) | {7})
    arrivals = form.arrivals(points, times, np.arange(n), groups)
    stepped, expected, before = form.new(2, window), [], -1
    for clock in clocks:
        stepped.step(arrivals.at((before <= times) & (times < clock)), clock)
        expected.append(stepped.current().tolist())
        before = clock
    assert [rows.tolist() for rows in form.new(2, window).currents(arrivals, clocks)] == expected


@by_form
def test_a_step_that_is_refused_changes_nothing(form):
    front = form.new(1, 10)
    one, group = np.array([[1.0]]), np.array([7])
    front.step(form.arrivals(one, np.array([3]), np.array([0]), group), 5)
    for points, times, until, complaint in [
        (one, [4], 9, r"times must be in \[5, 9\), got 4 to 4"),
        (one, [9], 9, r"times must be in \[5, 9\), got 9 to 9"),
        (one, [6], 4, "cannot go back from 5 to 4"),
        (np.array([[np.nan]]), [6], 9, "NaN in column 0 of row 1"),
        (np.ones((1, 2)), [6], 9, r"need points \(1, 1\), times and rows"),
    ]:
        with pytest.raises(BadInputError, match=complaint):
            front.step(form.arrivals(points, np.array(times), np.array([1]), group), until)
    other = form._replace(grouped=not form.grouped).arrivals(one, np.array([6]), np.array([1]), group)
    with pytest.raises(BadInputError, match=r"need a group for each point|need points without groups"):
        front.step(other, 9)
    assert (front.clock, front.current().tolist()) == (5, [0])
    none = form.arrivals(one[:0], np.empty(0, np.int64), np.empty(0, np.int64), group[:0])
    assert plain(front.step(none, 20)) == [Update(13, -1, 0)]
