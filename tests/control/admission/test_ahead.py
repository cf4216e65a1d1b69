"""The rate within a lead time: cases by hand, and what holds for any rates and statements."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.admission import MetaData
from skypane.control.admission.ahead import RatesAhead, checked_lead, rates_ahead
from skypane.control.admission.forecasting import HoltForecaster
from skypane.types import ConfigError

OPENS = datetime(2026, 3, 2, 9, 30, tzinfo=UTC).timestamp()
TEN = MetaData(changes=["x10 at 09:30 UTC", "x1 at 16:00 UTC"])
NOTHING = MetaData()
STEADY = [40.0] * 10


def known(
    now: float, rates: dict[str, list[float]], meta: dict[str, MetaData], lead: str = "1 minute", every: float = 2.0
) -> RatesAhead:
    periods = max(map(len, rates.values()), default=0)
    ends = [now - every * back for back in range(periods, -1, -1)]
    return rates_ahead(rates, ends, meta, lead, HoltForecaster())


def test_a_change_counts_from_the_lead_time_on_and_not_before():
    early = known(OPENS - 61, {"a": STEADY, "b": STEADY}, {"a": TEN, "b": NOTHING})
    assert early.rate == pytest.approx(80)
    assert not early.because
    assert early.expected == pytest.approx({"a": 40})
    there = known(OPENS - 60, {"a": STEADY, "b": STEADY}, {"a": TEN, "b": NOTHING})
    assert there.rate == pytest.approx(440)
    assert there.expected == pytest.approx({"a": 400})
    assert there.decision is not None
    assert (
        there.because
        == there.decision.because
        == ("DRF-M: 440 rows/s within 60 s, 80 by the forecast alone; a 400 (x10 at 09:30 UTC, in 60 s)")
    )
    assert there.decision.figures == {"forecast": pytest.approx(80), "stated inputs": 1.0, "lead": 60.0}


def test_the_rate_after_a_change_is_that_of_the_change_although_all_that_was_measured_is_older():
    """Half a second after the change, which the last period of two has a quarter of: 40 and 130 rows/s have been measured."""
    assert known(OPENS, {"a": STEADY}, {"a": TEN}).expected["a"] == pytest.approx(400)
    assert known(OPENS + 0.5, {"a": [*STEADY, 130.0]}, {"a": TEN}).expected["a"] == pytest.approx(400)


def test_a_factor_that_is_wrong_is_corrected_by_the_rates_that_follow_it():
    """Twice as much comes, not ten times; before that, ten times as much is expected."""
    after = known(OPENS + 40, {"a": [40.0] * 12 + [80.0] * 20}, {"a": TEN})
    assert 75 <= after.expected["a"] <= 110


def test_a_fall_that_is_stated_takes_nothing_away_before_it_is_measured():
    closes = OPENS + 6.5 * 3600
    assert known(closes - 1, {"a": [400.0] * 10}, {"a": TEN}).rate == pytest.approx(400)
    assert known(closes + 1, {"a": [400.0] * 10}, {"a": TEN}).rate >= 399
    assert known(closes + 40, {"a": [40.0] * 10}, {"a": TEN}).rate == pytest.approx(40)


def test_a_stated_rate_needs_none_that_was_measured():
    opens = MetaData(changes=["500 rows/s at 09:30 UTC", "0 rows/s at 16:00 UTC"])
    assert known(OPENS - 60, {"a": [0.0] * 4}, {"a": opens}).rate == 500
    assert known(OPENS - 60, {}, {"a": opens}).rate == 500, "nor any"
    assert known(OPENS - 61, {}, {"a": opens}).rate == 0
    assert known(OPENS - 60, {}, {"a": TEN}) == RatesAhead(), "ten times an unknown rate is unknown"


def test_the_lead_time_is_three_periods_at_least():
    assert known(OPENS - 90, {"a": STEADY}, {"a": TEN}, "0 s", every=30.0).rate == pytest.approx(400)
    assert known(OPENS - 91, {"a": STEADY}, {"a": TEN}, "0 s", every=30.0).rate == pytest.approx(40)


def test_characteristics_of_the_paper_count_as_in_drf_m_but_never_below_the_forecast():
    meta = {"a": MetaData(max=500), "b": MetaData(expected=5), "c": NOTHING}
    found = known(0.0, {"a": STEADY, "b": STEADY, "c": STEADY}, meta)
    assert found.expected == {"a": 500, "b": pytest.approx(40)}
    assert found.rate == pytest.approx(580)
    assert found.because.endswith("a 500 (by its characteristics); b 40 (by its characteristics)")


def test_a_jump_is_expected_before_its_phase_ends():
    """Thirty seconds low, thirty high: after sixteen low ones, the high rate is within twenty, and not within ten."""
    jumps = MetaData(min=10, max=100, transition="jump", low_period="30 s", high_period="30 s")
    rates = {"a": [100.0, 100.0] + [10.0] * 8}
    assert known(0.0, rates, {"a": jumps}, "20 s").rate == 100
    assert known(0.0, rates, {"a": jumps}, "10 s").rate < 20


def test_the_reason_names_three_inputs_of_many():
    meta = {f"s{at}": MetaData(max=100 + at) for at in range(5)}
    found = known(0.0, dict.fromkeys(meta, STEADY), meta)
    assert found.because.endswith(
        "s4 104 (by its characteristics); s3 103 (by its characteristics); s2 102 (by its characteristics); 2 more"
    )


@given(
    now=st.floats(OPENS - 200, OPENS + 200), lead=st.integers(0, 3600), every=st.floats(0.1, 60),
    rates=st.lists(st.floats(0, 1e5), max_size=20), other=st.lists(st.floats(0, 1e5), max_size=20),
    meta=st.sampled_from([TEN, NOTHING, MetaData(max=7), MetaData(changes="3 rows/s at 2026-03-02T09:30:00Z")]),
)  # fmt: skip
def test_no_statement_takes_capacity_away(now, lead, every, rates, other, meta):
    histories = {name: values for name, values in (("a", rates), ("b", other)) if values}
    plain = known(now, histories, {"a": NOTHING, "b": NOTHING}, f"{lead} s", every)
    stated = known(now, histories, {"a": meta, "b": NOTHING}, f"{lead} s", every)
    assert stated.rate >= plain.rate
    assert stated.forecasts == plain.forecasts
    assert (stated.decision is None) == (not stated.expected)
    assert plain.decision is None


@pytest.mark.parametrize(("lead", "message"), [
    ("2 hours", "lead is the time that workers need to start, at most 1 hour, got '2 hours'"),
    (60, "lead must be a text such as '10 minutes'"),
])  # fmt: skip
def test_a_lead_time_that_is_none_is_refused(lead, message: str):
    with pytest.raises(ConfigError, match=message):
        checked_lead(lead)
