from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import pytest

from skypane.control.admission.metadata import MetaData, averages
from skypane.types import ConfigError, Length


def test_there_are_the_ten_characteristics_of_the_paper_and_changes_at_known_times():
    assert [item.name for item in fields(MetaData)][10:] == ["changes"]


def test_names_with_values_as_they_come_from_yaml_are_read():
    given = {"min": 10, "max": 500.0, "transition": "jump", "period": "2 minutes", "low_period": "90 seconds"}
    assert MetaData.of(given) == MetaData(
        min=10, max=500.0, transition="jump", period="2 minutes", low_period="90 seconds"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"peak": 3}, r"meta: unknown characteristic 'peak' of a stream; use one of min, max"),
        ({"averge": 3}, r"meta: unknown characteristic 'averge' of a stream; did you mean 'average'\?"),
        ({"max": "fast"}, r"meta: max is a rate in rows per second, need a number of at least 0, got 'fast'"),
        ({"min": -1}, r"meta: min is a rate .* got -1"),
        ({"max": True}, r"meta: max is a rate .* got True"),
        ({"expected": float("nan")}, r"meta: expected is a rate .* got nan"),
        ({"min": 5, "max": 3}, r"meta: need min <= max, got min=5, max=3; swap them"),
        ({"max": 3, "average": 4}, r"meta: average must lie from min to max, None to 3, got 4"),
        ({"transition": "step"}, r"meta: transition must be one of jump, trend, got 'step'"),
        ({"burst_percent": 120}, r"meta: burst_percent is a share of time, need 0 to 100, got 120"),
        ({"period": 60}, r"meta: period must be a text such as '10 minutes' .* for seconds, write '60 seconds'"),
        ({"high_period": "0 s"}, r"meta: high_period must be longer than 0, got '0 s'"),
        ({"period": "1 min", "low_period": "2 min"}, r"meta: low_period and high_period lie within the period of 60"),
        (["max"], r"meta must be a mapping such as max: 500, got \['max'\]"),
    ],
)
def test_invalid_values_are_refused_with_field_value_and_remedy(given, message: str):
    with pytest.raises(ConfigError, match=message):
        MetaData.of(given)


def test_phases_follow_from_what_is_given_of_them():
    assert MetaData(period="1 minute").phases == (30, 30)
    assert MetaData(period="1 minute", high_period="10 s").phases == (50, 10)
    assert MetaData(low_period=timedelta(seconds=5), high_period="10 s").phases == (5, 10)
    assert MetaData(low_period="5 s").phases is None


def test_the_defaults_are_averages_over_the_streams_that_there_are():
    message = [MetaData(period="1 minute", transition="jump"), MetaData(period="3 minutes", transition="jump"),
            MetaData(transition="trend", burst_percent=20)]  # fmt: skip
    defaults = averages(message, [(10.0, 20.0), (30.0, 60.0), ()])
    assert defaults == MetaData(
        min=20, max=40, average=30, period=Length(120_000_000), transition="jump", burst_percent=20
    )


def test_averages_of_parts_fit_into_the_average_of_the_whole():
    defaults = averages([MetaData(period="10 s"), MetaData(low_period="20 s", high_period="30 s")], [])
    assert defaults.phases == (20.0, 30.0)
    assert defaults.seconds("period") == 50
