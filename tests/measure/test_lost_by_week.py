"""What the picture of the README counts as lost, and for how long an answer was waited for."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from measure.lost_by_week import BEGIN, SKYPANE, WEEK, Answers, Clock, by_week, draw, replay, true_flights
from pyspark.sql import SparkSession

from skypane.datasets.flights import departures

HOUR = timedelta(hours=1)


def test_flights_that_answers_lack_are_lost_in_the_week_of_their_hour(tmp_path: Path):
    true = {BEGIN: 10, BEGIN + HOUR: 30, BEGIN + WEEK: 20, BEGIN + WEEK + HOUR: 99}
    answers = Answers(Clock())
    answers.flights = {BEGIN: 9, BEGIN + HOUR: 27, BEGIN + WEEK: 20}
    answers.waits = {BEGIN: 1.0, BEGIN + HOUR: 2.0, BEGIN + WEEK: 0.5}
    year = by_week(true, answers)
    np.testing.assert_allclose(year.lost, [0.1, 0.0])
    np.testing.assert_allclose(year.waits, [1.5, 0.5])
    assert year.share == pytest.approx(4 / 60)
    draw(tmp_path / "weeks.svg", {SKYPANE: year})
    assert (tmp_path / "weeks.svg").read_text().count("<path") > 4


@pytest.mark.spark
@pytest.mark.slow
def test_no_way_counts_a_flight_twice_and_a_longer_delay_loses_no_more(spark: SparkSession, tmp_path: Path):
    flights = departures().select(["scheduled", "departed"])
    flights = flights.filter(pc.less(flights["departed"], BEGIN + 2 * timedelta(days=1)))
    true = true_flights(flights)
    answers = replay(spark, flights, tmp_path)
    assert len(answers) == 3
    for one in answers.values():
        assert one.flights
        assert all(flights <= true[hour] for hour, flights in one.flights.items())
        assert min(one.waits.values()) >= 0
    short, long, _ = (by_week(true, one).share for one in answers.values())
    assert short >= long
