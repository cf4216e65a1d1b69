from __future__ import annotations

import numpy as np
import pytest

from skypane.kernels.batch_skyline import skyline_indices
from skypane.operators.skyline import Skyline
from skypane.preference import from_sense
from skypane.runtime.sim.cost_models import BLOCK_NESTED_LOOPS, INDEPENDENT_8D, CostModel, ResultSize, fitted_size
from skypane.types import ConfigError
from skypane.workloads.content.points import DISTRIBUTIONS


def test_sizes_grow_by_a_power_and_never_beyond_the_tuples():
    size = ResultSize(scale=2.0, exponent=0.5)
    assert size.of(np.array([0, 1, 4, 100])).tolist() == [0, 1, 4, 20]


@pytest.mark.parametrize(("kind", "d"), [("independent", 4), ("correlated", 8)])
def test_a_fitted_size_is_that_of_the_kernels_within_a_tenth(kind: str, d: int):
    """Within the range that it was fitted on, on points that it was not fitted on; a power is not quite the shape."""
    size = fitted_size(kind, d, most=5_000)
    rng = np.random.default_rng(99)
    for tuples in (500, 4_000):
        exact = np.mean([len(skyline_indices(DISTRIBUTIONS[kind](tuples, d, rng))) for _ in range(12)])
        assert float(size.of(tuples)) == pytest.approx(exact, rel=0.25 if kind == "correlated" else 0.1)


@pytest.mark.parametrize("d", [1, 2, 4, 8])
def test_a_skyline_reports_the_fitted_growth(d: int):
    query = Skyline(from_sense([f"c{at}" for at in range(d)], ["min"] * d))
    assert query.growth == pytest.approx(fitted_size("independent", d, draws=2).exponent, abs=0.05)


def test_the_papers_pane_passes_on_the_papers_share():
    """Paper 5, section 5.2: without splitting 27 % of the tuples of a pane of 10K reach the second stage."""
    assert float(INDEPENDENT_8D.of(10_000)) / 10_000 == pytest.approx(0.27, abs=0.01)


def test_the_papers_stream_needs_seven_workers():
    """Paper 1, figure 8a: 100K tuples/s in panes of 10K, without bursts."""
    load = 100_000 * BLOCK_NESTED_LOOPS.tuples(10_000).mean()
    assert 6 < load < 7


def test_a_merge_by_hand():
    cost = CostModel(ResultSize(1, 1), 0, 0, merge_base=1.0, merge_row=0.1, merge_compare=0.01)
    assert cost.merge(10, 20) == pytest.approx(1 + 3 + 2)
    assert cost.united(25, 10, 20) == 25


def test_what_costs_less_than_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"got merge_row=-0\.1"):
        CostModel(ResultSize(1, 1), 0, 0, 0, -0.1, 0)
    with pytest.raises(ConfigError, match="sizes of results are fitted to points"):
        fitted_size("random", 3)
