"""Changes of a rate at known times: what a text means, when it comes, and which texts are refused."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.admission.rate_changes import Highest, RateSchedule
from skypane.types import ConfigError

DAY = RateSchedule.of(["x10 at 09:30 Europe/Zurich", "x1 at 16:00 Europe/Zurich"])
ONCE = RateSchedule.of("x10 at 2026-03-02T09:30:00+01:00")


def at(text: str, zone: str = "Europe/Zurich") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def test_a_daily_change_holds_from_its_time_in_its_zone_until_the_next_one():
    assert DAY.highest(at("2026-03-02T09:29:59"), at("2026-03-02T09:29:59")) == Highest(1.0)
    assert DAY.highest(at("2026-03-02T09:30:00"), at("2026-03-02T12:00:00")) == Highest(10.0)
    assert DAY.highest(at("2026-03-02T16:00:00"), at("2026-03-03T09:00:00")) == Highest(1.0), "also over midnight"
    coming = DAY.highest(at("2026-03-02T09:29:00"), at("2026-03-02T09:30:00"))
    assert coming == Highest(10.0, "x10 at 09:30 Europe/Zurich", at("2026-03-02T09:30:00"))


def test_half_past_nine_is_that_of_the_zone_before_and_after_clocks_go_forward():
    """In Zurich the 29th of March 2026 has 23 hours."""
    for day, hour in ((28, 8), (29, 7)):
        utc = datetime(2026, 3, day, hour, 30, tzinfo=UTC).timestamp()
        assert DAY.highest(utc - 1, utc - 1).value == 1.0
        assert DAY.highest(utc, utc).value == 10.0


def test_a_change_that_comes_once_holds_from_then_on_and_nothing_before_it():
    when = at("2026-03-02T09:30:00")
    assert ONCE.highest(when - 61, when - 60) == Highest(1.0)
    assert ONCE.highest(when - 60, when) == Highest(10.0, "x10 at 2026-03-02T09:30:00+01:00", when)
    assert ONCE.highest(when + 1e9, when + 1e9) == Highest(10.0)
    rates = RateSchedule.of("500 rows/s at 2026-03-02T09:30:00+01:00")
    assert rates.highest(when - 61, when - 60) == Highest(None)
    assert rates.highest(when, when) == Highest(500.0)
    assert (ONCE.is_over(when), ONCE.is_over(when + 1), DAY.is_over(1e12)) == (False, True, False)


def test_the_mean_factor_of_a_period_is_weighted_by_time():
    when = at("2026-03-02T09:30:00")
    assert DAY.means([when - 20, when - 10, when + 10, when + 20]) == pytest.approx([1.0, 5.5, 10.0])
    assert DAY.means([when]) == DAY.means([]) == []


@given(st.floats(0, 3e9), st.floats(0, 2e5), st.floats(0, 1))
def test_the_highest_value_of_a_span_is_no_less_than_any_within_it(begin: float, length: float, share: float):
    for schedule in (DAY, ONCE):
        inside = begin + share * length
        highest, there = schedule.highest(begin, begin + length), schedule.highest(inside, inside)
        assert highest.value is not None
        assert there.value is not None
        assert highest.value >= there.value
        assert bool(highest.change) != math.isnan(highest.at)
        if length:
            (mean,) = schedule.means([begin, begin + length])
            assert mean <= highest.value + 1e-9


@pytest.mark.parametrize(("given", "message"), [
    ("10 at 09:30 UTC", r"'10 at 09:30 UTC' is not a change of a rate; write 'x10 at 09:30 Europe/Zurich'"),
    ("x10 at 09:30", r"'x10 at 09:30': a time of day needs a time zone; add Europe/Zurich, UTC or an offset"),
    ("x10 at 09:30 Europe/Zürich", r"the time zone 'Europe/Zürich' is not known on this machine"),
    ("x10 at 09:30 +25:00", r"the time zone '\+25:00' is not known"),
    ("x10 at 24:30 UTC", r"24:30 is not a time of day; it lies from 00:00 to 23:59:59"),
    ("x10 at 2026-03-02T09:30:00", r"the time needs an offset from UTC; write 2026-03-02T09:30:00\+01:00 or 2026-03-02T09:30:00Z"),
    ("x10 at noon", r"noon is not a time; write 'x10 at 09:30 Europe/Zurich'"),
    ("x0 at 09:30 UTC", r"0 is not a factor above 0"),
    ("xten at 09:30 UTC", r"ten is not a factor above 0"),
    ("-1 rows/s at 09:30 UTC", r"-1 is not a rate in rows per second"),
    ("x10 at 09:30 UTC", r"'x10 at 09:30 UTC' holds all day, every day; add the daily change that ends it, such as 'x1 at 17:00"),
    (["x2 at 09:30 UTC", "20 rows/s at 16:00 UTC"], r"are factors and rates; write all of them as xN, or all as N rows/s"),
    (10, r"changes are texts such as 'x10 at 09:30 Europe/Zurich' \(every day\) or .*, got 10"),
    ([10], r"changes are texts such as .*, got \[10\]"),
])  # fmt: skip
def test_what_has_no_meaning_is_refused_with_the_remedy(given: object, message: str):
    with pytest.raises(ConfigError, match=message):
        RateSchedule.of(given)


def test_texts_of_other_forms_mean_the_same():
    utc = at("2026-03-02T09:30:00", "UTC")
    for text in ("x10 at 9:30 UTC", "x10 at 09:30:00 Z", "x10.0 at 10:30 +01:00"):
        schedule = RateSchedule.of([text, "x1 at 16:00 UTC"])
        assert schedule.highest(utc - 10, utc).at == utc, text
    assert RateSchedule.of(DAY.texts) == DAY
