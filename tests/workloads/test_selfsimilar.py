"""Both methods that estimate a Hurst parameter are known to be blunt: 0.1 either way is what is asked of them here."""

from __future__ import annotations

import pytest
from tests.workloads.streams import rate_of, times_of

from skypane.types import ConfigError
from skypane.workloads import ParetoSlots, SelfSimilar
from skypane.workloads.estimators import counts, hurst_by_range, hurst_by_variance, tail_exponent


@pytest.mark.parametrize("hurst", [0.6, 0.7, 0.8])
def test_superposed_streams_have_the_hurst_parameter_asked_for(hurst: float):
    times = times_of(SelfSimilar(5_000, hurst, "20 ms"), 3_000_000)
    assert rate_of(times) == pytest.approx(5_000, rel=0.1)
    series = counts(times, "100 ms")
    assert hurst_by_variance(series) == pytest.approx(hurst, abs=0.1)
    assert hurst_by_range(series) == pytest.approx(hurst, abs=0.12)


@pytest.mark.parametrize("hurst", [0.6, 0.7, 0.8])
def test_pareto_slots_have_the_tail_asked_for_and_no_memory(hurst: float):
    config = ParetoSlots(20_000, hurst)
    times = times_of(config, 3_000_000)
    assert rate_of(times) == pytest.approx(20_000, rel=0.1)
    series = counts(times, "1 ms")
    assert config.tail == pytest.approx(3 - 2 * hurst)
    assert tail_exponent(series) == pytest.approx(config.tail, rel=0.1)
    assert hurst_by_variance(series) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("config", [SelfSimilar, ParetoSlots])
@pytest.mark.parametrize("hurst", [0.5, 1.0, float("nan")])
def test_a_hurst_parameter_without_long_memory_is_refused(config, hurst: float):
    with pytest.raises(ConfigError, match=r"need 0\.5 < hurst < 1"):
        config(1_000, hurst)
