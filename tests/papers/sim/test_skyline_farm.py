"""The farm of paper 4 as a recurrence: by hand, against the eager algorithm's store, and where the paper's laws must hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.operators.fronts.eager import Eager
from tests.operators.fronts.streams import streams

from skypane.types import ConfigError
from skypane_papers.sim.skyline_farm import OWNERS, Costs, Farm, Lives, keeps_up, lives, simulate

SECOND = 1_000_000


def stream(n: int, rate: int, seconds: int, d: int = 5) -> Lives:
    rng = np.random.default_rng(1)
    return lives(np.asfortranarray(rng.random((n, d))), np.arange(n) * SECOND // rate, seconds * SECOND)


@given(streams())
def test_what_is_stored_at_all_workers_together_is_the_store_of_the_eager_algorithm(some):
    points, times, window = some
    unlike = np.unique(times, return_index=True)[1]  # as in the paper, no two points come at once
    points, times = np.asfortranarray(points[unlike]), times[unlike]
    run = simulate(lives(points, times, window), Farm(3, 2), Costs(1.0, 1.0))
    eager = Eager(window)
    for row, (point, time) in enumerate(zip(points.tolist(), times.tolist(), strict=True)):
        list(eager.arrive(tuple(point), time, row))
        assert run.stored[row].sum() == len(eager.db)


def test_a_case_by_hand():
    """Two workers, queues of one; a point costs 1, a stored one 2. Nothing is pruned, owners in turn, all come at 0.

    point   emitted   worker 0 takes it   worker 1
    0       0         0-1                 0-1           owner 0
    1       0         1-4                 1-2           owner 1: 0 has one point stored
    2       1         4-7                 2-5           owner 0: it waited for room until both had taken point 1
    3       4         7-12                5-8           owner 1: room when worker 0 took point 2
    """
    run = simulate(Lives(np.zeros(4), np.full(4, 4)), Farm(2, 1, "RR"), Costs(1.0, 2.0))
    assert run.emitted.tolist() == [0, 0, 1, 4]
    assert run.done.tolist() == [1, 4, 7, 12]
    assert run.stored.tolist() == [[1, 0], [1, 1], [2, 1], [2, 2]]
    assert run.difference.tolist() == [1, 0, 1, 0]


def test_an_owner_that_waits_is_never_sooner_done():
    some, costs = stream(4_000, 100_000, 1), Costs(1e-6, 1e-6, 1e-6)
    waits, goes_on = (simulate(some, Farm(4, 30, "RR", asynchronous), costs) for asynchronous in (False, True))
    assert (goes_on.done <= waits.done + 1e-12).all()
    assert goes_on.done[-1] < waits.done[-1]
    assert (goes_on.stored == waits.stored).all()


def test_loads_are_more_even_with_more_information_at_the_emitter():
    """Table I, with queues of a hundred points that are full: round-robin knows nothing of what was pruned."""
    some, costs = stream(60_000, 20_000, 1), Costs(1e-5, 1e-6)
    spread = {owner: simulate(some, Farm(8, 100, owner), costs).difference[20_000:].mean() for owner in OWNERS}
    assert spread["LLW+"] < spread["LLW"] < spread["RR"] < spread["OD"]


def test_a_farm_keeps_up_until_the_rate_is_what_it_can_serve():
    costs = Costs(1e-4, 1e-9)
    for rate, expected in ((9_000, True), (11_000, False)):
        some = stream(30_000, rate, 1)
        run = simulate(some, Farm(3, 50), costs)
        assert keeps_up(some, run) is expected
        assert run.bandwidth() == pytest.approx(min(rate, 10_000), rel=0.02)


def test_more_workers_serve_more_points():
    """Equation 2: the time of a point is that of the points stored, divided by the workers."""
    some, costs = stream(30_000, 10_000, 1), Costs(0.0, 1e-6)
    alone, four = (simulate(some, Farm(workers, 100), costs).bandwidth() for workers in (1, 4))
    assert four / alone == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("farm", [Farm(0), Farm(2, 0), Farm(2, 1, "LRU")])
def test_an_invalid_farm_is_refused(farm: Farm):
    with pytest.raises(ConfigError, match=r"at least 1 and owner one of RR, OD, LLW, LLW\+"):
        simulate(stream(3, 1, 1), farm, Costs(1.0, 1.0))
