from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.elasticity.fuzzy import AS_RUN, PROMPT, SMALL_COUNTS, FuzzyController, SmallCount
from skypane.control.elasticity.membership import Speeds, Splittings, Trapezoid
from skypane.control.elasticity.rules import RULES, Factors
from skypane.types import ConfigError

AT = {"fast": 0.3, "acceptable": 0.9, "slow": 1.5, "moderate": 1.0, "intensive": 5.0}
"""Values at which one term has the grade 1 and the others 0."""

PLAIN = FuzzyController(small=())


def decided(
    controller: FuzzyController, rho1: float, sigma: float, rho2: float, n: int, m: int, N: int = 60
) -> list[int]:
    """Return the decision on one situation."""
    return [int(workers) for workers in controller.decide(rho1, sigma, rho2, n, m, N)]


def factors(controller: FuzzyController, rho1: float, sigma: float, rho2: float, most: int = 60) -> tuple[float, float]:
    found = controller.infer(np.array(rho1), np.array(sigma), np.array(rho2), np.array(most))
    return float(found.factor_plq[0]), float(found.factor_wlq[0])


@pytest.mark.parametrize(("rho", "grades"), [
    (0.0, (1, 0, 0)), (0.5, (1, 0, 0)), (0.9, (0, 1, 0)), (1.3, (0, 0, 1)), (9.0, (0, 0, 1)), (math.inf, (0, 0, 1)),
    (1.1, (0, 0.5, 0.5)),
    (0.6, (0.75, 0.25, 0)),  # the example of section 4.2
])  # fmt: skip
def test_speeds_are_as_figure_7_draws_them(rho: float, grades: tuple[float, ...]):
    assert Speeds().grades(np.array([rho]))[0] == pytest.approx(grades)


@pytest.mark.parametrize(
    ("sigma", "grades"), [(1.0, (1, 0)), (1.5, (1, 0)), (3.0, (0.5, 0.5)), (4.5, (0, 1)), (60, (0, 1))]
)
def test_splittings_have_their_shoulders_at_the_quartiles(sigma: float, grades: tuple[float, ...]):
    assert Splittings().grades(np.array([sigma]), np.array([60]))[0] == pytest.approx(grades)


def test_a_term_may_end_with_the_workers_that_there_are():
    ending = Splittings(end=-1)
    assert ending.grades(np.array([59.0, 59.5]), np.array([60, 60]))[:, 1] == pytest.approx([1, 0])


@pytest.mark.parametrize("number", range(1, 13))
def test_each_rule_alone(number: int):
    rule = RULES[number - 1]
    rho1, sigma, rho2 = AT[rule.plq], AT[rule.splitting or "moderate"], AT[rule.wlq]
    found = PLAIN.infer(np.array(rho1), np.array(sigma), np.array(rho2), np.array(60))
    assert np.flatnonzero(found.activation[0]).tolist() == [number - 1]
    expected = getattr(Factors(), rule.change_plq), getattr(Factors(), rule.change_wlq)
    assert (found.factor_plq[0], found.factor_wlq[0]) == expected
    assert decided(PLAIN, rho1, sigma, rho2, 20, 8) == [20 * expected[0], 8 * expected[1]]


def test_the_rules_are_those_of_table_2():
    changes = [(rule.change_plq, rule.change_wlq) for rule in RULES]
    down, less, same, more, up = "decrease", "slight_decrease", "unchanged", "slight_increase", "increase"
    assert changes == [
        (down, down), (down, same), (down, up),
        (same, down), (same, same), (same, up),
        (more, down), (more, same), (same, up),
        (up, less), (up, more), (more, up),
    ]  # fmt: skip


def test_weighted_average_by_hand():
    """rho1 0.6, rho2 0.9: rule 2 by 0.75, rule 5 by 0.25: (0.75 x 0.5 + 0.25 x 1) and (0.75 + 0.25) x 1."""
    assert factors(PLAIN, 0.6, 1.0, 0.9) == pytest.approx((0.625, 1.0))


def test_accumulation_makes_a_difference_by_hand():
    """rho1 0.7, rho2 0.7: all of 1, 2, 4, 5 by 0.5. Sum: two and two; maximum: one each: the same. With a third not."""
    assert factors(PLAIN, 0.7, 1.0, 0.7) == pytest.approx((0.75, 0.75))
    # rho2 1.1 is half acceptable, half slow; rho1 0.8 is 0.25 fast, 0.75 acceptable.
    # PLQ: rules 2, 3 say decrease by 0.25 each, rules 5, 6 unchanged by 0.5 each.
    assert factors(PLAIN, 0.8, 1.0, 1.1)[0] == pytest.approx((0.25 + 1.0) / 1.5)
    strongest = replace(PLAIN, accumulation="maximum")
    assert factors(strongest, 0.8, 1.0, 1.1)[0] == pytest.approx((0.125 + 0.5) / 0.75)
    # WLQ: unchanged by 0.25 + 0.5, increase by as much; at most 0.5 each.
    assert factors(PLAIN, 0.8, 1.0, 1.1)[1] == factors(strongest, 0.8, 1.0, 1.1)[1] == pytest.approx(1.25)


@pytest.mark.parametrize("accumulation", ["sum", "maximum"])
@given(rho1=st.lists(st.floats(0, 3), min_size=2, max_size=2), sigma=st.floats(1, 8), rho2=st.floats(0, 3))
def test_a_slower_stage_never_gets_a_smaller_factor(accumulation, rho1, sigma, rho2):
    controller = replace(PLAIN, accumulation=accumulation)
    low, high = sorted(rho1)
    assert factors(controller, low, sigma, rho2)[0] <= factors(controller, high, sigma, rho2)[0] + 1e-9
    assert factors(controller, rho2, sigma, low)[1] <= factors(controller, rho2, sigma, high)[1] + 1e-9


@pytest.mark.parametrize("accumulation", ["sum", "maximum"])
@given(sigmas=st.lists(st.floats(1, 8), min_size=2, max_size=2), rho2=st.sampled_from([0.3, 0.9, 1.5]))
def test_more_splitting_never_takes_workers_from_a_plq_that_is_acceptable(accumulation, sigmas, rho2):
    controller = replace(PLAIN, accumulation=accumulation)
    low, high = sorted(sigmas)
    assert factors(controller, 0.9, low, rho2)[0] <= factors(controller, 0.9, high, rho2)[0] + 1e-9


FROM_POOL = replace(AS_RUN, grants="free")

situations = st.tuples(
    st.one_of(st.floats(0, 20), st.just(math.nan), st.just(math.inf)),
    st.one_of(st.floats(1, 60), st.just(math.nan)),
    st.one_of(st.floats(0, 20), st.just(math.nan), st.just(math.inf)),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(2, 60),
)


@pytest.mark.parametrize(
    "controller", [FuzzyController(), PLAIN, PROMPT, AS_RUN, replace(AS_RUN, served_first="plq"), FROM_POOL]
)
@given(table=st.lists(situations, min_size=1, max_size=6))
def test_a_table_is_decided_row_by_row_within_the_limits(controller, table):
    columns = [np.array(column) for column in zip(*table, strict=True)]
    n, m = controller.decide(*columns)
    assert (n >= 1).all()
    assert (m >= 1).all()
    assert (n + m <= columns[-1]).all()
    assert [decided(controller, *row) for row in table] == np.stack([n, m], axis=1).tolist()


def test_inputs_broadcast():
    n, m = FuzzyController().decide(np.linspace(0, 2, 7)[:, None], 1.0, np.linspace(0, 2, 5), 10, 10, 60)
    assert n.shape == m.shape == (7, 5)


@pytest.mark.parametrize("rho", [math.nan, -0.5])
def test_what_was_not_measured_changes_nothing(rho: float):
    assert decided(FuzzyController(), rho, 1.0, 2.0, 5, 6) == [5, 6]
    assert decided(FuzzyController(), 2.0, 1.0, rho, 5, 6) == [5, 6]


@pytest.mark.parametrize(("controller", "situation", "after"), [
    # No pane closed counts as no splitting.
    (FuzzyController(), (0.7, math.nan, 0.9, 8, 8, 60), [6, 8]),
    (FuzzyController(), (0.7, 1.0, 0.9, 8, 8, 60), [6, 8]),
    # Too many are reduced in proportion; with halves, who is served first keeps the rounding.
    (PLAIN, (1.5, 1.0, 1.5, 24, 30, 60), [24, 36]),  # wanted 24 x 1.25 = 30, 30 x 1.5 = 45
    (PLAIN, (1.5, 1.0, 1.5, 4, 10, 10), [2, 8]),  # wanted 5 and 15: 2.5 and 7.5
    (replace(PLAIN, served_first="plq"), (1.5, 1.0, 1.5, 4, 10, 10), [3, 7]),
    # So are both stages if each would have more than there may be, and one leaves the other what it needs.
    (PROMPT, (3.0, 1.0, 3.0, 9, 9, 30), [15, 15]),
    (PROMPT, (math.inf, 1.0, 0.9, 9, 9, 30), [29, 1]),
])  # fmt: skip
def test_decisions_by_hand(controller: FuzzyController, situation: tuple[Any, ...], after: list[int]):
    assert decided(controller, *situation) == after


@pytest.mark.parametrize(("workers", "rho", "after"), [
    (1, 1.05, 1),  # factor 1.19
    (1, 1.1, 2),   # 1.25: rounding alone would leave it at one for good
    (2, 1.05, 2),  # 2.38 rounds to 2 in any case
    (2, 0.75, 2),  # 0.81
    (2, 0.5, 1),
    (3, 0.8, 3),   # 0.875
    (3, 0.7, 2),   # 0.75
    (3, 1.06, 3),  # 1.2
    (3, 1.1, 4),   # 1.25
])  # fmt: skip
def test_small_counts_have_separate_thresholds(workers: int, rho: float, after: int):
    assert decided(FuzzyController(), rho, 1.0, 0.9, workers, 10)[0] == after


def test_a_mean_that_is_meant_as_1_25_is_on_every_cpu():
    """Tenths are not binary numbers: the sum that should be 1.875 of 1.5 misses it by what the order of adding leaves."""
    tenths = np.arange(1, 20) / 10
    rho1, rho2 = (grid.ravel() for grid in np.meshgrid(tenths, tenths))
    found = PLAIN.infer(rho1, np.ones(1), rho2, np.array(60))
    near = np.abs(found.factor_wlq - 1.25) < 1e-6
    assert near.sum() > 3
    assert (found.factor_wlq[near] == 1.25).all()
    assert decided(FuzzyController(), 0.8, 1.0, 1.1, 10, 1) == [8, 2]


def flaps(controller: FuzzyController, load: float, workers: int) -> bool:
    """Whether a constant load (in workers' worth) sends the PLQ up and down forever."""
    seen = []
    for _ in range(10):
        workers, _ = decided(controller, load / workers, 1.0, 0.9, workers, 10)
        seen.append(workers)
    return len(set(seen[-4:])) > 1


@pytest.mark.long
def test_few_workers_do_not_flap():
    loads = np.linspace(0.05, 3.5, 36)
    assert not [load for load in loads for workers in (1, 2, 3, 4) if flaps(FuzzyController(), load, workers)]
    assert not [load for load in 2 * loads for workers in range(1, 9) if flaps(PROMPT, load, workers)]
    assert flaps(PLAIN, 2.25, 2), "rounding alone: three, two, three, ..."
    assert decided(PLAIN, 1.1, 1.0, 0.9, 1, 10)[0] == 1, "rounding alone: one for good"


@pytest.mark.parametrize(("workers", "rho", "after", "by_rules"), [
    (2, 4.5, 10, 3),  # far too slow: all that it needs, at once
    (1, 0.95, 1, 1),  # 1.06 needed
    (4, 1.3, 6, 6),   # up to a factor of 1.5 the rules say as much
    (3, 0.7, 3, 2),   # two would be 1.05 utilised
    (8, 0.5, 5, 4),   # four would be full
    (8, 0.2, 4, 4),   # at most halved, as by the rules
])  # fmt: skip
def test_with_a_setpoint_a_stage_has_what_its_work_needs(workers: int, rho: float, after: int, by_rules: int):
    assert decided(PROMPT, rho, 1.0, 0.9, workers, 10)[0] == after
    assert decided(replace(PROMPT, setpoint=None), rho, 1.0, 0.9, workers, 10)[0] == by_rules


@given(rho=st.floats(0, 20), workers=st.integers(1, 40))
def test_a_setpoint_takes_nothing_from_what_the_rules_give_and_leaves_no_stage_short(rho, workers):
    found, by_rules = (decided(one, rho, 1.0, 0.9, workers, 1, 10_000)[0] for one in (PROMPT, FuzzyController()))
    assert found >= by_rules
    assert found >= min(workers, rho * workers / 0.9 - 1e-6), "none went that would be missed"
    assert found >= rho * workers / 0.9 - 0.5 - 1e-6, "those that lack come, but for half a worker"


def test_rounding_of_halves_is_a_field():
    """3 x 1.5 = 4.5."""
    assert decided(PLAIN, 1.5, 1.0, 0.9, 3, 10)[0] == 5
    assert decided(replace(PLAIN, rounding="even"), 1.5, 1.0, 0.9, 3, 10)[0] == 4


RECORDED = [
    # rho1, sigma, rho2, n, m -> n, m; workers up to 63
    (1.6521, 1.0, 1.33423, 1, 1, 2, 2),
    (1.24518, 1.2, 3.69931, 2, 2, 2, 3),
    (0.394841, 1.84615, 7.6574, 2, 3, 1, 5),
    (1.94414, 1.38889, 5.9764, 1, 5, 2, 8),
    (0.648924, 1.65, 0.870865, 2, 27, 2, 26),
    (0.740162, 1.9, 0.43156, 2, 26, 2, 13),
    (0.639487, 1.0, 0.681848, 2, 21, 2, 15),
    (0.591233, 1.90909, 1.23964, 2, 12, 2, 17),
    (1.14408, 1.45, 0.687526, 1, 24, 2, 21),
    (2.07936, 1.44444, 0.418768, 1, 11, 2, 8),
    (0.855252, 2.36364, 9.89844, 3, 4, 3, 6),
    (0.271871, 3.0, 11.4276, 3, 6, 2, 9),
    (0.748865, 2.0, 0.864478, 2, 48, 2, 45),
    (1.10546, 2.36364, 0.894577, 2, 39, 3, 43),
    (0.581124, 2.90909, 0.708831, 3, 43, 2, 33),
    (0.1392, 3.36364, 1.35554, 4, 20, 2, 30),
    (0.410421, 3.63636, 0.563137, 2, 30, 1, 17),
]
"""Steps of the authors' published run on their stream Game1 (skyline, setpoint 0.6 to 0.9): measured, and decided."""


def test_recorded_decisions_of_the_authors_are_met_with_the_settings_that_they_ran():
    rho1, sigma, rho2, n, m, *after = (np.array(column) for column in zip(*RECORDED, strict=True))
    assert np.array_equal(AS_RUN.decide(rho1, sigma, rho2, n, m, 63), after)


RECORDED_AT_THE_LIMIT = [
    # rho1, sigma, rho2, n, m -> n, m; workers up to 59
    (1.29538, 1.72727, 0.651827, 20, 31, 28, 29),
    (1.12375, 1.5, 0.695315, 28, 29, 30, 25),
    (0.968652, 1.4, 0.720279, 28, 29, 30, 24),
    (1.03546, 1.81818, 0.793022, 38, 20, 39, 17),
    (4.02739, 1.09524, 0.386721, 2, 57, 2, 43),
    (1.46169, 3.0, 0.586115, 3, 55, 4, 47),
]
"""Steps of published runs on Game1 to Game4 (setpoint 0.9) and MAP-DS I = 1K (0.7) in which few workers are free."""


def test_recorded_decisions_at_the_limit_are_met_if_only_free_workers_are_granted():
    rho1, sigma, rho2, n, m, *after = (np.array(column) for column in zip(*RECORDED_AT_THE_LIMIT, strict=True))
    assert np.array_equal(FROM_POOL.decide(rho1, sigma, rho2, n, m, 59), after)
    assert (AS_RUN.decide(rho1, sigma, rho2, n, m, 59)[0] > after[0]).all(), "the PLQ takes what the WLQ gives up"


@given(row=situations)
def test_no_stage_gets_more_than_the_free_workers(row):
    *_, n, m, most = row
    n_after, m_after = decided(FROM_POOL, *row)
    assert n_after - n <= max(most - n - m, 0)
    assert m_after - m <= max(most - n_after - m, 0)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: FuzzyController(setpoint=1.1), "need 0 < setpoint <= 1, got 1.1"),
    (lambda: FuzzyController().decide(1, 1, 1, 0, 1, 60), "n and m must be at least 1"),
    (lambda: FuzzyController().decide(1, 1, 1, 1, 1, 1), "N must be at least 2, one worker for each stage, got 1"),
    (lambda: Trapezoid(0, 2, 1, 3), "vertices of a trapezoid must ascend"),
    (lambda: Trapezoid(0, math.nan, 1, 3), "vertices of a trapezoid must ascend"),
    (lambda: Factors(decrease=0), "factors must be above 0 and ascend"),
    (lambda: Factors(increase=1.1), "factors must be above 0 and ascend"),
])  # fmt: skip
def test_invalid_values_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_small_counts_are_fields():
    eager = FuzzyController(small=(SmallCount(1, 0.0, 1.1),))
    assert decided(eager, 1.0, 1.0, 0.9, 1, 10)[0] == 2
    assert FuzzyController().small == SMALL_COUNTS
