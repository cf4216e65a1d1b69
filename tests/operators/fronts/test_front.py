from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.kernels.strategies import DISTRIBUTIONS, front
from tests.operators.fronts import naive
from tests.operators.fronts.eager import Update
from tests.operators.fronts.streams import Stream, history_of, plain, streams, told

from skypane.operators.fronts import ADD, DEL, Front, NewPoints, prefilter
from skypane.operators.fronts import front as front_module
from skypane.types import ConfigError
from skypane.workloads.content.points import correlated

cuts = st.lists(st.integers(-60, 400), max_size=6)


@given(streams(), cuts, st.integers(1, 6), st.integers(1, 6))
@example(Stream(np.array([[0.0], [5e-324]]), np.array([0, 0]), 1), [], 1, 1)
def test_arrivals_that_come_and_go_unseen_make_no_difference_wherever_they_are_looked_for(stream, cut, piece, late):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(front_module, "MANY", 1)
        patched.setattr(prefilter, "PIECE", piece)
        patched.setattr(prefilter, "_LATE", late)
        assert told(stream, cut) == naive.updates(*stream)


def test_most_correlated_arrivals_come_and_go_unseen():
    points, times = correlated(20_000, 5, np.random.default_rng(1)), np.arange(20_000)
    unseen, strong = prefilter.passing(points, times, None, 20_000)
    assert not unseen[: prefilter.PIECE].any(), "nothing came before the first piece"
    assert unseen[prefilter.PIECE :].mean() > 0.8
    assert strong is not None
    assert not prefilter.passing(points, times + 50_000, strong, 20_000).unseen[: prefilter.PIECE].any(), (
        "it has expired"
    )


@given(streams())
def test_the_history_of_a_table_is_when_each_row_is_on_the_front(stream):
    assert history_of(stream) == naive.updates(*stream)


@pytest.mark.long
@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("d", [1, 2, 5, 16])
def test_points_of_any_kind_through_blocks(draw, d):
    rng = np.random.default_rng(d)
    times = np.cumsum(rng.integers(0, 3, 1800))
    stream = Stream(draw(1800, d, rng), times, int(times[-1]) // 3)
    assert told(stream, [700, 1500, 1501]) == naive.all_pairs(*stream)


def test_a_store_that_outgrows_its_room():
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.integers(0, 3, 9000))
    stream = Stream(front(9000, 2, rng), times, 8000)
    assert told(stream, [4000]) == naive.all_pairs(*stream)


def test_the_store_holds_what_is_not_obsolete_and_no_more():
    rng = np.random.default_rng(1)
    points = rng.random((60_000, 3))
    front = Front(3, 1000)
    for first in range(0, 60_000, 1500):
        rows = np.arange(first, first + 1500)
        front.step(NewPoints(points[rows], rows, rows), first + 1500)
        assert len(front) < 400
    assert len(front._rows) < 20_000


def test_equal_points_stay_together_and_leave_one_by_one():
    front = Front(2, 10)
    same = np.array([[1.0, 1.0], [1.0, 1.0]])
    updates = front.step(NewPoints(same, np.array([0, 4]), np.array([7, 8])), 100)
    assert plain(updates) == [Update(0, ADD, 7), Update(4, ADD, 8), Update(10, DEL, 7), Update(14, DEL, 8)]


def test_a_point_that_expires_as_another_arrives_is_gone_when_it_comes():
    front = Front(1, 10)
    updates = front.step(NewPoints(np.array([[1.0], [2.0]]), np.array([0, 10]), np.array([0, 1])), 11)
    assert plain(updates) == [Update(0, ADD, 0), Update(10, DEL, 0), Update(10, ADD, 1)]


def test_a_clock_that_jumps_ahead_empties_the_front_at_the_times_at_which_its_points_expire():
    front = Front(1, 10)
    front.step(NewPoints(np.array([[1.0]]), np.array([0]), np.array([0])), 5)
    far = front.step(NewPoints(np.array([[9.0]]), np.array([10**15]), np.array([1])), 10**15 + 1)
    assert plain(far) == [Update(10, DEL, 0), Update(10**15, ADD, 1)]
    assert len(front) == 1


def test_many_equal_points_cost_no_more_than_one_block_each():
    n = 30_000
    front = Front(3, n)
    updates = front.step(NewPoints(np.zeros((n, 3)), np.arange(n), np.arange(n)), n)
    assert len(updates.rows) == n


@pytest.mark.parametrize("window", [0, -5, 101 * 366 * 86_400_000_000])
def test_a_window_of_no_length_or_beyond_a_century_is_refused(window):
    with pytest.raises(ConfigError, match=f"got {window} microseconds"):
        Front(2, window)
