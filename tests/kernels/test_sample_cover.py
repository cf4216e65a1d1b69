"""A cover of a sample: what it says that its points dominate, they dominate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skypane.kernels.sample_cover import CANDIDATES, JUDGES, sample_cover

GRADES = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf])


@st.composite
def samples(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray | None]:
    n, d = draw(st.integers(0, 40)), draw(st.integers(1, 4))
    points = draw(hnp.arrays(np.float64, (n, d), elements=GRADES))
    groups = draw(st.none() | hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    return points, groups


def dominated(points: np.ndarray, groups: np.ndarray | None, lead: int, by: int) -> np.ndarray:
    """The mask of the points that one of them dominates, by the definition."""
    return np.array([
        (groups is None or groups[by] == groups[i]) and all(points[by] <= points[i]) and points[by][lead] < points[i][lead]
        for i in range(len(points))
    ], bool)  # fmt: skip


@given(samples(), st.integers(0, 5), st.sampled_from([0.0, 0.1, 0.5]), st.data())
def test_its_share_is_what_its_points_dominate(sample, most, least, data):
    points, groups = sample
    lead = data.draw(st.integers(0, points.shape[1] - 1))
    cover = sample_cover(points, groups, lead, most, least)
    assert len(cover.indices) <= most
    left = np.ones(len(points), bool)
    for index in cover.indices:
        gain = left & dominated(points, groups, lead, index)
        assert gain.sum() >= max(1, least * len(points))
        left &= ~gain
    assert cover.share == pytest.approx(1 - left.mean() if len(points) else 0.0)


def test_a_point_that_is_better_everywhere_is_all_that_is_chosen():
    points = np.random.default_rng(1).random((500, 3)) + 1
    points[217] = 0.0
    cover = sample_cover(points, None, 0, 16, 0.02)
    assert cover.indices.tolist() == [217]
    assert cover.share == pytest.approx(1 - 1 / 500)


def test_each_of_several_groups_has_a_point():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(8), 100)
    cover = sample_cover(rng.random((800, 2)), groups, 0, 16, 0.02)
    assert set(groups[cover.indices]) == set(range(8))
    assert cover.share > 0.8


def test_of_more_groups_than_candidates_the_largest_have_points():
    groups = np.concatenate([np.arange(CANDIDATES * 2), np.full(JUDGES, 7)])
    cover = sample_cover(np.random.default_rng(3).random((len(groups), 2)), groups, 0, 16, 0.02)
    assert set(groups[cover.indices]) == {7}


def test_about_nine_of_ten_independent_points_are_dominated_by_three_of_a_sample():
    rng = np.random.default_rng(4)
    points, others = rng.random((8192, 4)), rng.random((20_000, 4))
    cover = sample_cover(points, None, 0, 3, 0.02)
    found = np.any([(points[index] < others).all(axis=1) for index in cover.indices], axis=0)
    assert found.mean() == pytest.approx(0.9, abs=0.05)
