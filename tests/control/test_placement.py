from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.placement import DueRows, DueWindows, PlacementChoice, place_rows, place_windows
from skypane.policy import Decision

MILLION = 1_000_000


def decide(known: DueWindows, costs: Costs = DEFAULT_COSTS) -> Decision[PlacementChoice]:
    return place_windows(known, costs)


@pytest.mark.parametrize(("known", "place", "alone", "together"), [
    (DueWindows(0, 0, 5, 4), PlacementChoice("driver"), 0.0, 0.15),
    (DueWindows(10, 100_000, 1, 4), PlacementChoice("driver"), 0.048, 0.162),
    (DueWindows(10, MILLION, 1, 4), PlacementChoice("spark", 4), 0.408, 0.252),
    (DueWindows(10, MILLION, 5, 4), PlacementChoice("spark", 4), 1.208, 0.452),
    (DueWindows(2, MILLION, 5, 4), PlacementChoice("spark", 2), 1.2016, 0.7508),
    (DueWindows(1000, 1000, 1, 2), PlacementChoice("spark", 2), 0.8004, 0.5502),
    # Fewer windows than workers: they share each by its keys, if it has any; and where keys are very many.
    (DueWindows(1, MILLION, 5, 4, keys=9), PlacementChoice("spark", 1, 4), 1.2008, 0.5102),
    (DueWindows(2, MILLION, 5, 5, keys=9), PlacementChoice("spark", 2, 2), 1.2016, 0.5104),
    (DueWindows(4, MILLION, 5, 4, keys=9), PlacementChoice("spark", 4), 1.2032, 0.4508),
    (DueWindows(4, MILLION, 5, 4, keys=100_000), PlacementChoice("spark", 1, 4), 1.2032, 0.5108),
    (DueWindows(1, 10_000, 5, 4, keys=10_000), PlacementChoice("driver"), 0.0128, 0.1538),
    # Where workers are threads of the driver's own process, it needs no job to have their cores.
    (DueWindows(10, 200_000, 1, 2, threads=True), PlacementChoice("threads", 2), 0.088, 0.068),
    (DueWindows(100, 20_000, 1, 2, threads=True), PlacementChoice("driver"), 0.088, 0.104),
    (DueWindows(10, MILLION, 1, 1, threads=True), PlacementChoice("driver"), 0.408, 0.428),
    (DueWindows(1, MILLION, 5, 4, keys=9, threads=True), PlacementChoice("threads", 1, 4), 1.2008, 0.3808),
    # Rows that are compared once, for all their windows cost two merges, however many windows hold them.
    (DueWindows(10, MILLION, 5, 4, compared_once=True), PlacementChoice("spark", 4), 0.808, 0.352),
    (DueWindows(10, 200_000, 5, 2, compared_once=True, threads=True), PlacementChoice("threads", 2), 0.168, 0.108),
    (DueWindows(10, 100_000, 1, 4, compared_once=True), PlacementChoice("driver"), 0.048, 0.162),
])  # fmt: skip
def test_windows_are_answered_where_it_is_sooner_done(
    known: DueWindows, place: PlacementChoice, alone: float, together: float
):
    decision = decide(known)
    assert decision.value == place
    assert decision.figures == pytest.approx({"alone": alone, "together": together})
    assert f"{alone * 1e3:.0f} ms alone, {together * 1e3:.0f} ms" in decision.because


@pytest.mark.parametrize(("windows", "workers"), [(1, 8), (50, 1)])
def test_what_cannot_be_cut_stays_in_the_driver(windows: int, workers: int):
    assert decide(DueWindows(windows, 100 * MILLION, 5, workers)).value.where == "driver"


def test_shared_merges_make_a_long_overlap_no_dearer_than_three():
    assert decide(DueWindows(10, MILLION, 1_000, 4)) == decide(DueWindows(10, MILLION, 3, 4))


@pytest.mark.parametrize(("fresh", "unmerged", "place", "alone"), [
    (None, None, PlacementChoice("threads", 2), 1.208),  # it has no merges
    (100_000, 100_000, PlacementChoice("driver"), 0.128),  # it has answered the windows before
    (100_000, MILLION, PlacementChoice("driver"), 0.263),  # others have: it has to catch up once
    (800_000, MILLION, PlacementChoice("threads", 2), 0.998),  # most rows are new anyway
    (0, None, PlacementChoice("driver"), 0.158),  # nothing has been answered here yet
])  # fmt: skip
def test_the_driver_merges_only_what_is_new_to_it(
    fresh: int | None, unmerged: int | None, place: PlacementChoice, alone: float
):
    due = DueWindows(10, MILLION, 5, 2, keys=9, threads=True, fresh=fresh, unmerged=unmerged)
    decision = decide(due)
    assert decision.value == place
    assert decision.figures == pytest.approx({"alone": alone, "together": 0.628})


@given(
    st.integers(0, 100), st.integers(0, 10 * MILLION), st.integers(1, 20), st.integers(1, 20), st.integers(0, MILLION)
)
def test_every_run_has_a_window_and_every_task_a_worker(
    windows: int, row_count: int, overlap: int, workers: int, keys: int
):
    place = decide(DueWindows(windows, row_count, overlap, workers, keys)).value
    assert 1 <= place.runs <= max(1, min(windows, workers))
    assert place.runs <= place.tasks <= workers
    assert place.where == "spark" or place.tasks == 1
    assert keys or place.parts == 1


def test_each_cost_is_one_that_the_choice_depends_on():
    """The keys from which windows are divided by them, what dividing costs, and what threads cost."""
    due = DueWindows(4, MILLION, 5, 4, keys=60_000)
    assert decide(due).value == PlacementChoice("spark", 4)
    assert decide(due, Costs(many_keys=50_000)).value == PlacementChoice("spark", 1, 4)
    assert decide(due, Costs(many_keys=50_000, divided_per_row=1e-6)).value == PlacementChoice("driver")
    small = DueWindows(10, 200_000, 1, 2, threads=True)
    assert decide(small, Costs(threads=0.1)).value == PlacementChoice("driver")


def test_where_a_job_costs_nothing_workers_share_what_can_be_shared():
    few = DueWindows(2, 10, 1, 2)
    assert decide(few).value == PlacementChoice("driver")
    assert decide(few, Costs(job=0)).value == PlacementChoice("spark", 2)


@pytest.mark.parametrize(("known", "place", "seconds"), [
    (DueRows(1_000, 60_000, 4), PlacementChoice("driver"), {}),  # a job costs more
    (DueRows(200_000, 200_000, 2), PlacementChoice("spark", 2), {}),  # two seconds of pairs, and half of them
    (DueRows(210_000, 8_000, 2), PlacementChoice("driver"), {}),  # most do not stay: a hundred milliseconds
    (DueRows(200_000, 200_000, 1), PlacementChoice("driver"), {}),  # one worker does no less than the driver
    (DueRows(0, 10 * MILLION, 8), PlacementChoice("driver"), {}),
    (DueRows(200_000, 200_000, 2, grouped=True), PlacementChoice("driver"), {}),  # each row meets few
    (DueRows(MILLION, 200_000, 2, grouped=True), PlacementChoice("spark", 2), {}),
    # Shards are in threads where the driver has cores.
    (DueRows(1_000, 10_000, 4, threads=4), PlacementChoice("driver"), {"alone": 0.0004, "threads": 0.0025}),
    (DueRows(20_000, 100_000, 4, threads=4), PlacementChoice("threads", 4), {"alone": 0.068, "threads": 0.023625}),
    (DueRows(20_000, 100_000, 4, threads=1), PlacementChoice("driver"), {"alone": 0.068}),  # one core
    # A front whose shards are there already has no index to build.
    (DueRows(20_000, 100_000, 4, threads=4, resident=4), PlacementChoice("threads", 4), {"threads": 0.0205}),
    (DueRows(8_000, 90_000, 2, threads=2), PlacementChoice("threads", 2), {"alone": 0.02336, "threads": 0.016893}),
    (DueRows(1_500, 96_000, 4, threads=4), PlacementChoice("driver"), {"alone": 0.0045, "threads": 0.0063}),
    # Many workers against few cores of the driver.
    (DueRows(MILLION, MILLION, 64, threads=2), PlacementChoice("spark", 64), {"alone": 45.1}),
    (DueRows(MILLION, 200_000, 2, grouped=True, threads=2), PlacementChoice("threads", 2), {"threads": 1.00825}),
])  # fmt: skip
def test_a_front_stays_in_the_driver_until_pairs_cost_more_than_threads_or_a_job(
    known: DueRows, place: PlacementChoice, seconds: dict[str, float]
):
    decision = place_rows(known, DEFAULT_COSTS)
    assert decision.value == place
    assert f"{known.coming} rows meet {known.stored} stored" in decision.because
    for name, expected in seconds.items():
        assert decision.figures[name] == pytest.approx(expected, rel=0.05)
    assert (f" in {known.threads} threads" in decision.because) == (known.threads > 1)


@pytest.mark.parametrize(
    ("coming", "cores", "place"),
    [
        (1_000, 4, "driver"),
        (10_000, 4, "threads"),
        (100_000, 4, "threads"),
        (10_000, 1, "driver"),
        (100_000, 1, "driver"),
    ],
)
def test_a_front_is_placed_within_a_tenth_of_the_lowest_figure_of_the_decision(coming: int, cores: int, place: str):
    """docs/decisions/22, with the cost of a row that its driver has shown: 219 ms for 100,000."""
    shown = 219 / 443
    costs = replace(
        DEFAULT_COSTS,
        front_per_row=shown * DEFAULT_COSTS.front_per_row,
        front_per_pair=shown * DEFAULT_COSTS.front_per_pair,
    )
    assert place_rows(DueRows(coming, 96_331, 4, threads=cores), costs).value.where == place


@given(st.integers(0, MILLION), st.integers(0, MILLION), st.integers(2, 16), st.booleans())
def test_what_decides_is_the_least_of_three(coming: int, stored: int, workers: int, resident: bool):
    decision = place_rows(DueRows(coming, stored, workers, threads=4, resident=4 * resident), DEFAULT_COSTS)
    places = {"driver": "alone", "threads": "threads", "spark": "together"}
    assert decision.figures[places[decision.value.where]] == min(decision.figures.values())


@given(st.integers(0, MILLION), st.integers(0, MILLION), st.integers(1, 16))
def test_shards_are_used_only_where_they_finish_sooner(coming: int, stored: int, workers: int):
    decision = place_rows(DueRows(coming, stored, workers), DEFAULT_COSTS)
    figures = decision.figures
    assert (decision.value.where == "spark") == (figures["together"] < figures["alone"])
    assert decision.value.runs == (workers if decision.value.where == "spark" else 1)
