"""Fronts of rows: what the eager algorithm says of the points of all rows at once, however the rows come."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.fronts.eager import Eager, Update, net

import skypane as sp
from skypane.operators.fronts import ContinuousSkyline, RowFront
from skypane.operators.fronts import row_front as rows_module
from skypane.operators.fronts.shards import ShardPlan
from skypane.preference.groups import group_codes
from skypane.testing import check_query
from skypane.types import BadInputError, ConfigError

PREFERENCES = {
    "floats": sp.low("price") * sp.high("rating"),
    "decimals": sp.low("cost") * sp.high("rating"),
    "large whole numbers": sp.high("serial") * sp.low("price"),
    "a chain": (sp.low("price") & sp.high("rating")) * sp.low("cost"),
    "distances": sp.around("serial", 2**60) * sp.low("price"),
}
WINDOW = 10


@st.composite
def tables(draw):
    """Rows at ascending times."""
    n = draw(st.integers(0, 20))
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5, 11]), min_size=n, max_size=n))
    times = pa.array(np.cumsum(gaps, dtype=np.int64), pa.timestamp("us", "UTC"))
    numbers = [0.0, 1.0, 2.0, 3.0]
    return pa.table({"id": pa.array(range(n), pa.int64()), "ts": times, **draw(few_values(n, numbers, numbers))})


@st.composite
def few_values(draw, n, prices, ratings):
    """Columns of n values of which four are distinct, some of these such that float64 cannot hold them."""
    small = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    return {
        "city": pa.array([["a", "b", None, "a"][i] for i in draw(small)], pa.string()),
        "size": pa.array([[0.0, -0.0, float("nan"), None][i] for i in draw(small)], pa.float64()),
        "price": pa.array([prices[i] for i in draw(small)], pa.float64()),
        "rating": pa.array([ratings[i] for i in draw(small)], pa.float64()),
        "cost": pa.array([Decimal(i) / 10 for i in draw(small)], pa.decimal128(20, 2)),
        "serial": pa.array([2**60 + i for i in draw(small)], pa.int64()),
    }


def eager_updates(query: ContinuousSkyline, rows: pa.Table):
    """(time, action, id) of all updates, by the eager algorithm over the points of all rows, group by group."""
    points, times = query.preference.points(rows).values.tolist(), query.times(rows).tolist()
    groups = group_codes(rows, query.groups)
    told = []
    for group in {None} if groups is None else set(groups.tolist()):
        eager = Eager(query.window)
        updates: list[Update] = []
        for row in np.argsort(times, kind="stable").tolist():
            if groups is None or groups[row] == group:
                updates += eager.arrive(tuple(points[row]), times[row], row)
        told += net([*updates, *eager.advance(2**62)])
    ids = rows["id"].to_pylist()
    return [(time, {1: "ADD", -1: "DEL"}[action], ids[row]) for time, action, row in sorted(told)]


def plain(updates: pa.Table):
    columns = updates["action_time"].cast(pa.int64()), updates["action"], updates["id"]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def in_order(updates) -> bool:
    keys = [(time, action == "ADD") for time, action, _ in updates]
    return keys == sorted(keys)


@pytest.mark.long
@pytest.mark.parametrize("preference", PREFERENCES.values(), ids=PREFERENCES.keys())
@given(
    by=st.sampled_from([(), ("city",), ("size", "city")]),
    rows=tables(),
    cuts=st.lists(st.integers(0, 80), max_size=4),
    care=st.integers(0, 2),
    shards=st.integers(0, 2),
)
def test_updates_equal_those_of_the_eager_algorithm_for_any_values_and_cut(preference, by, rows, cuts, care, shards):
    """Care: keep the front; make it again from what is stored after each step; forget whatever nothing needs."""
    query = ContinuousSkyline(preference, "ts", WINDOW, by)
    times = query.times(rows)
    front, told, there = RowFront(query, rows.schema), [], Counter[int]()
    with pytest.MonkeyPatch.context() as patched:
        if care == 2:
            patched.setattr(rows_module, "_SPARE", 0)
        before = -1
        for until in [*sorted(cuts), 200]:
            some = rows.filter(pa.array((before <= times) & (times < until)))
            parts = [query.lift(some.slice(at, 3)) for at in range(0, some.num_rows, 3)]
            news = plain(front.step(query.combine([some.slice(0, 0), *parts]), until, ShardPlan(shards)))
            told += news
            for _, action, row in news:
                there[row] += {"ADD": 1, "DEL": -1}[action]
            assert sorted(front.current()["id"].to_pylist()) == sorted(row for row, n in there.items() if n)
            assert front.stored().num_rows == len(front)
            before = until
            if care == 1:
                front = RowFront.of(query, rows.schema, [front.stored()], until)
    assert in_order(told)
    assert sorted(told, key=lambda update: (update[0], update[1] == "ADD", update[2])) == eager_updates(query, rows)
    assert len(front) == 0


@given(tables(), st.data())
def test_which_rows_are_left_depends_on_the_rows_alone(rows, data):
    query = ContinuousSkyline(PREFERENCES["decimals"], "ts", WINDOW, "city")
    where = np.array(data.draw(st.lists(st.integers(0, 2), min_size=rows.num_rows, max_size=rows.num_rows)), np.int64)
    parts = [query.lift(rows.filter(pa.array(where == part))) for part in range(3)]
    left = query.combine([query.combine(parts[:2]), parts[2]])["id"].to_pylist()
    assert sorted(left) == query.lift(rows)["id"].to_pylist() == sorted({row for *_, row in eager_updates(query, rows)})


def test_the_laws_of_a_query_hold():
    rng = np.random.default_rng(0)
    rows = pa.table({
        "ts": pa.array(rng.integers(0, 40, 60), pa.timestamp("us")),
        "price": rng.integers(0, 4, 60).astype(float),
        "rating": rng.integers(0, 4, 60).astype(float),
    })  # fmt: skip
    check_query(ContinuousSkyline(PREFERENCES["floats"], "ts", WINDOW), rows)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: ContinuousSkyline("price MIN", "ts", 0), "window must be longer than 0 and at most 100 years, got 0"),
        (lambda: ContinuousSkyline(sp.diff("city"), "ts", 5), "at least one of low, high or around"),
        (lambda: ContinuousSkyline(sp.low("a") & sp.low("b"), "ts", 5), "continuous skylines need a product"),
    ],
)
def test_an_invalid_query_is_refused(make, complaint):
    with pytest.raises(ConfigError, match=complaint):
        make()


def test_columns_of_updates_have_distinct_names():
    schema = pa.schema({"ts": pa.timestamp("us"), "price": pa.float64(), "Action": pa.string()})
    with pytest.raises(ConfigError, match="updates add columns action and action_time: rename Action"):
        RowFront(ContinuousSkyline("price MIN", "ts", 5), schema)


def test_a_row_from_before_the_clock_is_refused_and_the_front_stays():
    rows = pa.table({"id": [1, 2], "ts": pa.array([5, 20], pa.timestamp("us")), "price": [1.0, 2.0]})
    front = RowFront(ContinuousSkyline("price MIN", "ts", WINDOW), rows.schema)
    front.step(rows.slice(0, 1), 10)
    with pytest.raises(BadInputError, match=r"times must be in \[10, 30\), got 5 to 20"):
        front.step(rows, 30)
    assert front.current()["id"].to_pylist() == [1]


@pytest.mark.parametrize("shards", [0, 2])
def test_a_group_that_vanishes_is_forgotten_and_may_come_again(shards: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rows_module, "_SPARE", 0)
    times, cities = [0, 2, 90, 100, 101, 200], ["Basel", "Bern", "Bern", "Bern", "Basel", "Bern"]
    rows = pa.table({"id": range(6), "ts": pa.array(times, pa.timestamp("us")), "price": [1.0] * 6, "city": cities})
    front = RowFront(ContinuousSkyline("price MIN", "ts", WINDOW, "city"), rows.schema)
    plan = ShardPlan(shards)
    front.step(rows.slice(0, 2), 50, plan)
    assert sorted(front._rows.keys["city"].to_pylist()) == ["Basel", "Bern"]
    assert plain(front.step(rows.slice(2, 1), 95, plan))[-1] == (90, "ADD", 2)
    front.step(rows.slice(3, 1), 101, plan)
    assert front._rows.keys["city"].to_pylist() == ["Bern"]
    assert (101, "ADD", 4) in plain(front.step(rows.slice(4, 1), 102, plan))
    assert sorted(front.current()["city"].to_pylist()) == ["Basel", "Bern"]
