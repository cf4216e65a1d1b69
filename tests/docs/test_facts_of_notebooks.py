"""What the notebooks of docs show, against definitions that need no Spark: of skylines, and of what each query on late rows answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache

import moocore
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.docs.notebook_outputs import by_name, code_cells, printed, stored, table

import skypane as sp
from skypane.datasets.flights import departures
from skypane.plan import Plan
from skypane.runtime import local

HOUR = timedelta(hours=1)
BEGIN = datetime(2013, 7, 5, tzinfo=UTC)
CRITERIA = {"distance": -1, "arr_delay": 1, "dep_delay": 1, "speed": -1, "air_time": 1}
"""What makes the smaller value of each the better one."""


@cache
def july() -> pa.Table:
    """Return the flights of July that have arrived."""
    flights = departures()
    flights = flights.filter(pc.is_valid(flights["arr_delay"]))
    flights = flights.append_column("speed", pc.divide(pc.multiply(flights["distance"], 60.0), flights["air_time"]))
    begin = datetime(2013, 7, 1, tzinfo=UTC)
    departed = pc.field("departed")
    return flights.filter((departed >= begin) & (departed < begin + timedelta(days=31)))


def points(flights: pa.Table, criteria: int) -> np.ndarray:
    """Return the first criteria of flights, one in a row, of which the smaller value is the better one."""
    values = [sign * flights[name].to_numpy() for name, sign in CRITERIA.items()]
    return np.array(values[:criteria])


def unbeaten(some: np.ndarray, others: np.ndarray, on: int) -> np.ndarray:
    """Return which points no other one beats by definition: by being at least as good on so many criteria, and better on one of them."""
    return np.array(
        [not (((others <= one).sum(0) >= on) & (others < one).any(0)).any() for one in some.T[:, :, np.newaxis]]
    )


@pytest.mark.long
def test_the_skyline_of_each_airport_is_that_of_the_definition():
    shown = {tuple(row[1:7]) for row in table(code_cells(stored("skylines"))[1])[1:]}
    expected = set()
    for airport in ("EWR", "JFK", "LGA"):
        flights = july().filter(pc.field("origin") == airport)
        best = flights.filter(pa.array(unbeaten(points(flights, 2), points(flights, 2), on=2)))
        names = ("origin", "carrier", "flight", "dest", "distance", "arr_delay")
        expected |= {
            tuple(map(str, flight)) for flight in zip(*(best[name].to_pylist() for name in names), strict=True)
        }
    assert shown == expected


@pytest.mark.long
def test_more_criteria_leave_as_many_flights_as_the_definition():
    sets = [points(july(), criteria) for criteria in range(1, 6)]
    best = [each[:, moocore.is_nondominated(each.T.astype(float), keep_weakly=True)] for each in sets]
    # A flight that another one beats on all criteria is also beaten on four of them.
    four = int(unbeaten(best[-1], sets[-1], on=4).sum())
    sizes = [each.shape[1] for each in best]
    assert printed(code_cells(stored("skylines"))[3]).strip() == str([*sizes, four])


def test_the_stream_of_skylines_answers_as_the_static_query_does():
    assert " 0 differ" in printed(code_cells(stored("skylines"))[5])


@cache
def week() -> list[tuple[datetime, pa.Table]]:
    """Return the files of the week, each with the time at which it arrives: every three hours."""
    flights, departed = departures().select(["scheduled", "departed", "dep_delay"]), pc.field("departed")
    ends = [BEGIN + 3 * number * HOUR for number in range(1, 57)]
    return [(end, flights.filter((departed >= end - 3 * HOUR) & (departed < end))) for end in ends]


def hours_of(flights: pa.Table) -> Iterator[datetime]:
    """Yield the end of each flight's window."""
    for scheduled in flights["scheduled"].to_pylist():
        yield scheduled.replace(minute=0, second=0) + HOUR


def by_watermark(delay: timedelta) -> dict[datetime, tuple[int, datetime]]:
    """Return the flights of each window, and when it is answered, as Spark's documentation defines a watermark.

    It is the newest event time of the batches before, less the delay. A window that it has passed is answered after the
    batch, and rows of later batches do not count in it.
    """
    counted: dict[datetime, int] = defaultdict(int)
    answered: dict[datetime, datetime] = {}
    newest = watermark = datetime.min.replace(tzinfo=UTC)
    for clock, flights in week():
        for end in hours_of(flights):
            if end > watermark:
                counted[end] += 1
        newest = max([newest, *flights["scheduled"].to_pylist()])
        watermark = max(watermark, newest - delay) if len(flights) else watermark
        for end in counted:
            if end <= watermark:
                answered.setdefault(end, clock)
    return {end: (counted[end], clock) for end, clock in answered.items()}


def by_budget(share: float) -> dict[datetime, tuple[int, datetime]]:
    """Return the flights of each window, and when it is answered, as skypane's definition in one process does."""
    plan = Plan(sp.Aggregate(flights=sp.count()), sp.Windows.of("1 hour"), "scheduled", progress=sp.AqKSlack(share))
    answered = {}
    steps = local.run(plan, [flights for _, flights in week()])
    for (clock, _), step in zip(week(), steps, strict=True):
        for answer in step.answers:
            (row,) = answer.rows.to_pylist()
            answered[row["window_end"]] = row["flights"], clock
    return answered


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "answered"),
    [
        ("Spark, 30 minutes", lambda: by_watermark(timedelta(minutes=30))),
        ("Spark, 3 hours", lambda: by_watermark(3 * HOUR)),
        ("skypane, 1 %", lambda: by_budget(0.01)),
        ("skypane, 5 %", lambda: by_budget(0.05)),
    ],
)
def test_each_query_loses_and_waits_as_its_definition_does(name, answered):
    windows = answered()
    true: dict[datetime, int] = defaultdict(int)
    for _, flights in week():
        for end in hours_of(flights):
            true[end] += 1
    lost = [1 - flights / true[end] for end, (flights, _) in windows.items()]
    waits = [(clock - end) / HOUR for end, (_, clock) in windows.items()]
    missing = 1 - sum(flights for flights, _ in windows.values()) / sum(true[end] for end in windows)
    expected = [len(windows), 100 * missing, 100 * max(lost), float(np.mean(waits)), max(waits)]
    assert by_name(code_cells(stored("late-data"))[3])[name] == pytest.approx(expected, abs=0.0051)


def test_budgets_are_kept_in_the_week_and_near_to_it_in_each_month():
    cells = code_cells(stored("late-data"))
    summary = by_name(cells[3])
    assert summary["skypane, 1 %"][1] < 1
    assert summary["skypane, 5 %"][1] < 5
    spans = dict(line.split(": ") for line in printed(cells[6]).splitlines() if "month" in line)
    low, high = (float(word) for word in spans["1.0%"].split() if word[0].isdigit())
    least, most = (float(word) for word in spans["60 min"].split() if word[0].isdigit())
    assert 0.5 < low < high < 1.6
    assert most > 4 * least


def test_elastic_workers_pay_for_steps_and_not_for_bursts():
    cells = code_cells(stored("elastic-workers"))
    steps, bursts = by_name(cells[4]), by_name(cells[6])
    policies = ("Threshold", "Fuzzy", "Model")
    cost, wait = 0, 4
    for policy in policies:
        assert steps[policy][cost] < 0.7 * steps["4 fixed"][cost]
        assert steps[policy][wait] < steps["3 fixed"][wait]
        assert bursts[policy][cost] > bursts["3 fixed"][cost]
        assert bursts[policy][wait] > bursts["3 fixed"][wait]
    eager = bursts["Threshold, eager"]
    assert eager[wait] < min(bursts[policy][wait] for policy in policies)
    assert eager[cost] > bursts["4 fixed"][cost]
    assert eager[wait] > bursts["4 fixed"][wait]
