from __future__ import annotations

import numpy as np
from hypothesis import given
from tests.operators.fronts import naive
from tests.operators.fronts.eager import Eager, Kind, Update, net
from tests.operators.fronts.streams import streams

from skypane.operators.fronts.front_operator import ADD, DEL


def run(stream):
    eager = Eager(stream.window)
    updates: list[Update] = []
    for row, (point, time) in enumerate(zip(stream.points.tolist(), stream.times.tolist(), strict=True)):
        updates += eager.arrive(tuple(point), time, row)
    return [*updates, *eager.advance(2**62)]


def test_a_case_by_hand():
    """Window 10. b dominates a; c is dominated by b, and d prunes it before b expires; e waits for d, then enters.

    time    0    1    2    3                  13                  20
    a (2,2) ADD  DEL
    b (1,1)      ADD                          (11: DEL)
    c (3,3)           waits for 11, pruned at 3
    d (3,2)                ADD at 11, when b expires; DEL at 13
    e (4,4)                                   arrives at 12, dominated by d: ADD at 13, DEL at 22
    """
    eager = Eager(10)
    updates: list[Update] = []
    for row, (point, time) in enumerate(
        [((2.0, 2.0), 0), ((1.0, 1.0), 1), ((3.0, 3.0), 2), ((3.0, 2.0), 3), ((4.0, 4.0), 12)]
    ):
        updates += eager.arrive(point, time, row)
    updates += eager.advance(100)
    assert updates == [
        Update(0, ADD, 0),
        Update(1, DEL, 0),
        Update(1, ADD, 1),
        Update(11, DEL, 1),
        Update(11, ADD, 3),
        Update(13, DEL, 3),
        Update(13, ADD, 4),
        Update(22, DEL, 4),
    ]
    assert not eager.db


@given(streams())
def test_it_is_the_definition(stream):
    assert net(run(stream)) == naive.updates(*stream)


@given(streams())
def test_updates_come_in_order_of_time_and_each_row_enters_and_leaves_once(stream):
    updates = run(stream)
    assert [u.time for u in updates] == sorted(u.time for u in updates)
    for row in {u.row for u in updates}:
        assert [u.action for u in updates if u.row == row] == [ADD, DEL]


@given(streams())
def test_a_point_that_reaches_its_expiration_is_part_of_the_skyline_then(stream):
    """Lemma 3.1: it has an expire event, which only skyline points have; it entered before, or in that instant."""
    eager = Eager(stream.window)
    for row, (point, time) in enumerate(zip(stream.points.tolist(), stream.times.tolist(), strict=True)):
        list(eager.advance(time + 1))
        assert all(other.expires > time for other in eager.db.values())
        list(eager.arrive(tuple(point), time, row))
        expiring = {r for _, kind, r in eager.events if kind == Kind.EXPIRE.value and r in eager.db}
        waiting = {r for _, kind, r in eager.events if kind == Kind.SKYTIME.value and r in eager.db}
        assert expiring == {r for r, other in eager.db.items() if other.is_skyline}
        assert waiting == eager.db.keys() - expiring
        entry = {r: at for at, kind, r in eager.events if kind == Kind.SKYTIME.value}
        assert all(entry[r] <= eager.db[r].expires for r in waiting)


def test_a_stay_of_no_length_is_two_updates_that_net_takes_out():
    eager = Eager(10)
    updates = [*eager.arrive((2.0,), 5, 0), *eager.arrive((1.0,), 5, 1)]
    assert updates == [Update(5, ADD, 0), Update(5, DEL, 0), Update(5, ADD, 1)]
    assert net(updates) == [Update(5, ADD, 1)]
    assert np.sign(DEL) < np.sign(ADD)
