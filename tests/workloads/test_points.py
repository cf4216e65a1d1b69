from __future__ import annotations

import numpy as np
import pytest

from skypane.types import FloatArray
from skypane.workloads import Classic, Drifting
from skypane.workloads.content.points import DISTRIBUTIONS
from skypane.workloads.estimators import mean_correlation, skyline_share
from skypane.workloads.stream import generator


def by_definition(kind: str, n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """The literature's description, point by point, with its means of twelve uniform numbers."""
    found: list[list[float]] = []
    while len(found) < n:
        centre = rng.random(d).mean() if kind == "correlated" else rng.uniform(0.25, 0.75, 12).mean()
        reach = min(centre, 1 - centre)
        point = [float(centre)] * d
        for j in range(d):
            step = rng.uniform(-reach, reach, 12).mean() if kind == "correlated" else rng.uniform(-reach, reach)
            point[j] += step
            point[(j + 1) % d] -= step
        if min(point) >= 0 and max(point) <= 1:
            found.append(point)
    return np.array(found)


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
@pytest.mark.parametrize("d", [1, 2, 8, 16])
def test_points_lie_in_the_unit_cube_column_by_column(kind: str, d: int):
    points = DISTRIBUTIONS[kind](500, d, generator(1, 0))
    assert points.shape == (500, d)
    assert points.T.flags.c_contiguous
    assert 0 <= points.min() <= points.max() <= 1
    assert DISTRIBUTIONS[kind](0, d, generator(1, 0)).shape == (0, d)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["correlated", "anticorrelated"])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_points_are_drawn_as_defined(kind: str, d: int):
    drawn = DISTRIBUTIONS[kind](100_000, d, generator(2, 0))
    wanted = by_definition(kind, 4_000, d, generator(3, 0))
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.quantile(drawn, share) == pytest.approx(np.quantile(wanted, share), abs=0.02)
        assert np.quantile(drawn.sum(axis=1), share) == pytest.approx(np.quantile(wanted.sum(axis=1), share), abs=0.05)
    for a in range(d):
        for b in range(a):
            expected = np.corrcoef(wanted[:, a], wanted[:, b])[0, 1]
            assert np.corrcoef(drawn[:, a], drawn[:, b])[0, 1] == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("d", [2, 5, 8])
def test_skylines_grow_from_correlated_to_anticorrelated(d: int):
    shares = {kind: skyline_share(draw(10_000, d, generator(4, 0))) for kind, draw in DISTRIBUTIONS.items()}
    assert shares["correlated"] < shares["independent"] < shares["anticorrelated"]


def test_the_kind_determines_the_correlation():
    rows = np.zeros(50_000, dtype=np.int64)
    assert mean_correlation(Classic("correlated", 2).draw(rows, generator(5, 0))) > 0.65
    assert mean_correlation(Classic("independent", 2).draw(rows, generator(5, 0))) == pytest.approx(0, abs=0.02)
    assert mean_correlation(Classic("anticorrelated", 2).draw(rows, generator(5, 0))) < -0.8


def test_drifting_points_pass_from_kind_to_kind_and_back():
    config = Drifting(("correlated", "anticorrelated"), period="8 seconds", d=2)
    # Four moments of two periods: pure, half way, pure, half way.
    moments = np.repeat(np.arange(8) * 2_000_000, 20_000)
    points = config.draw(moments, generator(6, 0))
    assert points.T.flags.c_contiguous
    found = [mean_correlation(part) for part in np.split(points, 8)]
    rows = np.zeros(50_000, dtype=np.int64)
    pure = [mean_correlation(Classic(kind, 2).draw(rows, generator(7, 0))) for kind in config.kinds]
    for turn in (0, 4):
        assert found[turn] == pytest.approx(pure[0], abs=0.03)
        assert found[turn + 2] == pytest.approx(pure[1], abs=0.03)
        assert pure[1] + 0.1 < found[turn + 1] < pure[0] - 0.1
        assert pure[1] + 0.1 < found[turn + 3] < pure[0] - 0.1
