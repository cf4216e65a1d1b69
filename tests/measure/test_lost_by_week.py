"""What the table and the picture of a year count as lost, and how long an answer was waited for."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from measure.lost_by_week import (
    BEGIN,
    SKYPANE,
    STEP,
    WEEK,
    WINDOWS,
    Answers,
    Clock,
    Year,
    best_delay,
    by_policy,
    by_queries,
    by_week,
    check,
    draw,
    files,
    pictured,
    policies,
    true_flights,
)
from pyspark.sql import SparkSession

import skypane as sp
from skypane.datasets.flights import departures
from skypane.plan import Plan
from skypane.runtime import local

HOUR = timedelta(hours=1)


def first_flights(length: timedelta) -> pa.Table:
    flights = departures().select(["scheduled", "departed"])
    return flights.filter(pc.less(flights["departed"], BEGIN + length))


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


def test_no_line_is_cut_off():
    low, high = (
        Year(np.array([0.01, 0.02]), np.array([1.0, 2.0]), 0.01),
        Year(np.array([0.2, 0.3]), np.array([5.0, 9.0]), 0.3),
    )
    for years in ({"low": low, "high": high}, {"high": high, "low": low}):
        above, below = pictured(years).axes
        assert above.get_ylim()[0] == below.get_ylim()[0] == 0
        assert above.get_ylim()[1] >= 30
        assert below.get_ylim()[1] >= 9


@pytest.mark.parametrize("name", policies())
def test_a_policy_answers_what_a_query_with_it_answers(name: str):
    flights, policy = first_flights(timedelta(days=3)), policies()[name]
    plan = Plan(sp.Aggregate(flights=sp.count()), WINDOWS, "scheduled", policy)
    expected = Answers(Clock())
    arriving = files(flights, expected.clock)
    for outcome in local.run(plan, arriving):
        for answer in outcome.answers:
            (row,) = answer.rows.to_pylist()
            expected.keep(row["window_start"], row["flights"])
    assert expected.flights
    check({name: expected}, {name: by_policy(flights, policy)})


def test_an_answer_that_differs_is_named():
    one, other = Answers(Clock(BEGIN + 2 * HOUR)), Answers(Clock(BEGIN + 2 * HOUR))
    one.keep(BEGIN, 7)
    other.keep(BEGIN, 7)
    check({SKYPANE: one}, {SKYPANE: other})
    other.clock.now += HOUR
    other.keep(BEGIN, 7)
    with pytest.raises(ValueError, match="7 flights after 1 h, the query 7 flights after 2 h"):
        check({SKYPANE: one}, {SKYPANE: other})


def test_the_best_delay_in_hindsight_loses_no_more_and_a_shorter_one_does():
    flights = first_flights(timedelta(days=3))
    true, most = true_flights(flights), 0.02
    delay = best_delay(flights, most)

    def lost(delay: timedelta) -> float:
        answered = by_policy(flights, sp.Watermark(delay, max_ahead=None)).flights
        return float(sum(true[hour] - counted for hour, counted in answered.items()) / flights.num_rows)

    assert lost(delay) <= most < lost(delay - STEP)


@pytest.mark.spark
@pytest.mark.night
def test_queries_of_spark_and_skypane_answer_as_the_policies(spark: SparkSession, tmp_path: Path):
    flights = first_flights(timedelta(hours=34))  # with a night
    found = by_queries(spark, flights, tmp_path)
    assert len(found) == 3
    assert all(one.flights for one in found.values())
    check({name: by_policy(flights, policy) for name, policy in policies().items()}, found)
