"""A stream made to order is described as what was ordered; a missing figure has its reason."""

import re

import numpy as np
import pyarrow as pa
import pytest

import skypane as sp
from skypane.describing.columns import ColumnRoles, RecordedStream, stream_of
from skypane.describing.statistics import of_counts, statistics
from skypane.workloads import workload

ROLES = ColumnRoles("time", "arrival", "source", "key", sp.low("c0") * sp.low("c1"))


def named(found):
    return {statistic.name: statistic for statistic in found}


def figures(found):
    return {name: statistic.value for name, statistic in named(found).items()}


@pytest.fixture(scope="module")
def made():
    senders = {"sources": 5, "keys": 20, "keys_exponent": 1}
    ordered = workload("poisson", rate=1_000, delay="uniform", delay_mean="100 ms", d=2, rows=100_000, **senders)
    return figures(statistics(stream_of(ordered.table(), ROLES)))


def number(text):
    return float(text.split()[0].removesuffix("/s").replace(",", ""))


def test_rate_and_bursts(made):
    assert made["rows"] == "100,000"
    assert number(made["mean rate"]) == pytest.approx(1_000, rel=0.02)
    assert number(made["index of dispersion"]) == pytest.approx(1, rel=0.25)
    assert number(made["SCV of gaps"]) == pytest.approx(1, rel=0.05)
    assert number(made["Hurst, variance"]) == pytest.approx(0.5, abs=0.1)


def test_disorder(made):
    assert number(made["mean delay"]) == pytest.approx(100, rel=0.02)
    assert number(made["longest delay"]) == pytest.approx(200, rel=0.01)
    assert 90 < number(made["late share"]) < 100


def test_skew_and_criteria(made):
    assert made["sources"] == "5"
    assert made["keys"] == "20"
    assert made["Zipf exponent"] == "1.00"
    assert number(made["mean correlation"]) == pytest.approx(0, abs=0.02)
    assert number(made["skyline share"]) < 1


def test_order_replaces_a_missing_arrival_time():
    table = workload("poisson", rate=1_000, delay="uniform", delay_mean="100 ms", d=1, rows=20_000).table()
    found = figures(statistics(stream_of(table, ColumnRoles("time"))))
    assert number(found["mean rate"]) == pytest.approx(1_000, rel=0.03)
    assert 150 < number(found["longest delay"]) <= 200
    assert "sources" not in found


def test_few_rows_give_the_reason_for_a_missing_figure():
    stream = RecordedStream(np.array([5, 7]), np.array([8, 9]), np.array([0, 0]), np.array([0, 1]), np.zeros((0, 2)), 2)
    found = named(statistics(stream))
    assert found["index of dispersion"].value == "n/a"
    assert found["index of dispersion"].meaning.startswith("need counts of")
    assert found["incomparable rows"].value == "2"
    assert "skyline share" not in found


@pytest.mark.parametrize(("times", "rows"), [([], "0"), ([3, 3], "2"), ([3], "1")])
def test_hardly_any_rows(times, rows):
    assert figures(statistics(RecordedStream(np.array(times, np.int64))))["rows"] == rows


def test_counts_alone():
    rng = np.random.default_rng(1)
    found = figures(of_counts(rng.poisson(1_000, 2_000)))
    assert found["seconds"] == "2,000"
    assert number(found["mean rate"]) == pytest.approx(1_000, rel=0.01)
    assert number(found["index of dispersion"]) == pytest.approx(1, rel=0.2)


def test_no_counts():
    assert figures(of_counts(np.zeros(0, np.int64)))["rows"] == "0"


def test_nothing_is_read_from_an_empty_table():
    empty = pa.table({"time": pa.array([], pa.timestamp("us"))})
    assert figures(statistics(stream_of(empty, ColumnRoles("time")))) == {"rows": "0"}


def test_an_index_of_dispersion_states_whether_it_rises_or_falls():
    rng = np.random.default_rng(2)
    in_turn = 1_000 + 300 * (-1) ** np.arange(3_000) + rng.integers(-9, 9, 3_000)
    # Counts whose mean wanders: they vary more, the longer the interval.
    wandering = rng.poisson(np.exp(np.cumsum(rng.normal(0, 0.05, 3_000))) * 1_000)
    rising, falling = (figures(of_counts(counts))["index of dispersion"] for counts in (wandering, in_turn))
    assert rising.startswith("above ")
    assert rising.endswith(", still rising")
    assert falling.startswith("below ")
    assert falling.endswith(", still falling")


def test_an_estimate_that_no_hurst_parameter_has_is_marked():
    in_turn = named(of_counts(np.tile([900, 1_100], 2_000)))["Hurst, variance"]
    assert in_turn.value.startswith("(-")
    assert in_turn.meaning.startswith("of counts per 1 s; outside 0 to 1, so no Hurst parameter")
    poisson = named(of_counts(np.random.default_rng(3).poisson(1_000, 4_000)))["Hurst, variance"]
    assert float(poisson.value) == pytest.approx(0.5, abs=0.1)


def test_years_that_no_calendar_has_are_reported_and_doubted():
    stream = RecordedStream(np.array([1_700_000_000 * 10**9, 1_700_000_001 * 10**9]), unit_assumed=True)
    found = named(statistics(stream))
    assert found["event time"].value == "the year 55,840 to the year 55,840"
    assert found["warning"].meaning.endswith("--unit ns gives 2023")


@pytest.mark.parametrize("stragglers", [0, 1, 300])
def test_rows_that_come_half_an_hour_after_the_others_change_no_figure_of_rate_and_bursts(stragglers):
    """2,000 rows a second, of which so many come 1,921 s late: the rate of all rows over all time would be 10/s."""
    arrival = workload("poisson", rate=2_000, d=1, rows=20_000).table()["time"].cast(pa.int64()).to_numpy()
    late = np.sort(np.concatenate([arrival[stragglers:], arrival[:stragglers] + 1_921_000_000]))
    found = named(statistics(RecordedStream(arrival, late)))
    assert number(found["mean rate"].value) == pytest.approx(2_000, rel=0.03)
    assert found["mean rate"].meaning == "of the middle nine tenths of the rows, as all figures of rate and bursts"
    assert number(found["peak to mean"].value) < 1.1
    assert number(re.sub("^[a-z]+ ", "", found["index of dispersion"].value)) < 2
    assert number(found["SCV of gaps"].value) == pytest.approx(1, rel=0.1)


def test_a_stream_most_of_which_comes_at_once_has_the_rate_of_all_of_it():
    clock = np.concatenate([np.zeros(98, np.int64), [500_000, 1_000_000]])
    found = named(statistics(RecordedStream(clock, clock)))
    assert number(found["mean rate"].value) == 99
    assert found["mean rate"].meaning == "of all rows: nine tenths of them arrive at the same time"
