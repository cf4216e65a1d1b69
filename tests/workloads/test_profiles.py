from __future__ import annotations

import numpy as np
import pytest
from tests.workloads.streams import rate_of, times_of

from skypane.workloads import OnOff, RandomWalk, Steps
from skypane.workloads.arrivals.profiles import FIGURE_9
from skypane.workloads.estimators import counts, dispersion, peak_to_mean


def test_steps_have_their_rates_in_turn_and_again():
    times = times_of(Steps((1_000, 4_000, 0, 2_000), "2 seconds"), 60_000)
    per_step = counts(np.insert(times, 0, 0), "2 seconds")[:8]
    assert per_step == pytest.approx([2_000, 8_000, 0, 4_000] * 2, rel=0.1)


def test_the_default_steps_are_those_of_the_figure():
    per_step = counts(np.insert(times_of(Steps(), 3_100_000), 0, 0), "30 seconds")[:2]
    assert per_step / 30 == pytest.approx(FIGURE_9[:2], rel=0.01)


def test_a_random_walk_keeps_its_mean_and_its_bounds():
    walk = RandomWalk(2_000, sigma=0.5, every="1 second")
    times = times_of(walk, 3_000_000)
    assert rate_of(times) == pytest.approx(2_000, rel=0.1)
    low, high = walk.bounds
    per_second = counts(np.insert(times, 0, 0), "1 second")
    assert low - 5 * np.sqrt(low) < per_second.min() < 1.3 * low
    assert 0.8 * high < per_second.max() < high + 5 * np.sqrt(high)
    assert peak_to_mean(per_second) == pytest.approx(high / 2_000, rel=0.2)


def test_a_random_walk_steps_by_sigma_and_holds_in_between():
    walk = RandomWalk(100_000, sigma=0.1, every="1 second", span=20)
    tenths = counts(np.insert(times_of(walk, 6_000_000), 0, 0), "100 ms")
    rates = tenths[: len(tenths) // 10 * 10].reshape(-1, 10)
    assert (rates.std(axis=1) < 3 * np.sqrt(rates.mean(axis=1))).all()
    steps = np.diff(np.log(rates.mean(axis=1)))
    assert steps.std() == pytest.approx(0.1, rel=0.35)


def test_on_off_arrivals_have_their_rate_and_their_dispersion():
    config = OnOff(1_000, on="100 ms", off="200 ms")
    times = times_of(config, 2_000_000)
    assert rate_of(times) == pytest.approx(1_000, rel=0.03)
    assert config.dispersion == pytest.approx(1 + 2 * 1_000 * 0.04 / 0.3)
    assert dispersion(times).value == pytest.approx(config.dispersion, rel=0.15)
