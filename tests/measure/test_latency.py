from __future__ import annotations

from dataclasses import replace

import pytest
from measure.latency import plot as latency_plot
from measure.latency import policies as latency
from measure.latency import runs as latency_runs

from skypane.windows import Windows


@pytest.fixture(scope="module")
def small():
    """An experiment that runs in a second, and its results."""
    windows = Windows.of("1 second", "200 ms")
    experiment = replace(latency_runs.heavy_tailed("Small", windows, rows=40_000), warm_up=4_000)
    return experiment, latency_runs.results(experiment)


def test_every_policy_is_there_k_slack_first(small):
    assert [result.name for result in small[1]] == [
        "`KSlack()`",
        '`Watermark("1 second")`',
        '`Watermark("5 seconds")`',
        "`AqKSlack(0.01)`",
        "`AqKSlack(0.02)`",
        "`AqKSlack(0.05)`",
        "K-slack, tuple by tuple",
    ]


def test_windows_are_compared_over_the_same_time(small):
    ends = {int(result.times.end[-1]) for result in small[1]}
    assert len(ends) == 1


def test_no_latency_is_below_the_window_where_the_first_tuple_is_at_its_start(small):
    experiment, found = small
    for result in found:
        # Tuples arrive after their event time, so the first one is within the window or later.
        assert (result.times.past_end >= 0).all()
        assert (result.times.latency <= result.times.past_end + experiment.windows.length).all()


def chosen(result, reference, after):
    """The largest share that a policy chose to drop, at any batch: without what K-slack dropped as well."""
    trace = result.trace
    return float(((trace.dropped - reference.trace.dropped) / trace.seen)[trace.seen >= after].max())


def test_adaptive_policies_keep_their_budget_and_wait_less(small):
    experiment, (reference, *others) = small
    for result in others:
        if result.budget is not None:
            assert chosen(result, reference, experiment.warm_up) <= result.budget
            assert result.mean_latency < reference.mean_latency


def test_the_table_has_a_row_per_policy(small):
    experiment, found = small
    lines = latency.table(experiment, found).splitlines()
    assert lines[0] == "**Small**"
    assert len(lines) == 4 + len(found)
    assert {line.count("|") for line in lines[2:]} == {11}
    assert " 1.0x " in lines[4]
    assert " s |" in lines[2]


def test_the_figure_is_the_same_each_time(small, tmp_path):
    for name in ("a.svg", "b.svg"):
        latency_plot.write(tmp_path / name, *small)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()


@pytest.mark.night
def test_flights_keep_the_budget_at_a_fifth_of_k_slacks_latency():
    experiment = latency_runs.flights("Flights", Windows.of("10 minutes"))
    reference, *others = latency_runs.results(experiment)
    adaptive = [result for result in others if result.budget is not None]
    assert [result.budget for result in adaptive] == [0.01, 0.02, 0.05]
    for result in adaptive:
        assert result.budget is not None
        assert result.trace.drop_ratio()[-1] <= result.budget
        assert chosen(result, reference, experiment.warm_up) <= 1.01 * result.budget
        assert reference.mean_latency > 5 * result.mean_latency
