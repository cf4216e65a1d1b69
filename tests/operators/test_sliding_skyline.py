"""The skyline of a window that slides: what one merge of all its panes gives, however panes come and go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.strategies import DISTRIBUTIONS
from tests.operators.fronts.test_row_front import PREFERENCES, few_values
from tests.rows import multiset

import skypane as sp
from skypane.operators.fronts import front, grouped_fronts, row_front, small_fronts
from skypane.operators.fronts.front import Front
from skypane.operators.query import QueueQuery
from skypane.operators.sliding_skyline import FEW_PANES

BY = [(), ("city",), ("size",), ("city", "size")]


@st.composite
def panes(draw) -> list[tuple[int, pa.Table]]:
    """Rows of ascending panes with gaps, with few distinct values."""
    gaps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 3, 9]), min_size=1, max_size=12))
    return [(int(pane), draw(rows())) for pane in np.cumsum(gaps) - 5]


@st.composite
def rows(draw) -> pa.Table:
    n = draw(st.integers(1, 8))
    ids = draw(st.lists(st.integers(0, 10**6), min_size=n, max_size=n))
    few = draw(few_values(n, [0.0, -0.0, 1.0, float("inf")], [float("-inf"), 1.0, 2.0, 3.0]))
    return pa.table({"id": pa.array(ids, pa.int64()), **few})


@contextmanager
def tight() -> Iterator[None]:
    """With room for next to nothing, so that all is made again often; and with groups that are large at once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_front, "_SPARE", 0)
        patched.setattr(small_fronts, "_LEAST_SPARE", 2)
        patched.setattr(grouped_fronts, "LARGE", 3)
        yield


@pytest.mark.long
@pytest.mark.parametrize("preference", PREFERENCES.values(), ids=PREFERENCES)
@given(panes=panes(), data=st.data())
def test_is_the_skyline_of_all_panes_of_each_window_and_stays_are_the_windows_that_hold_a_row(preference, panes, data):
    by = data.draw(st.sampled_from(BY))
    length = data.draw(st.integers(1 if by else FEW_PANES + 1, 9))
    skyline = sp.Skyline(preference, by)
    query = data.draw(st.sampled_from([skyline, sp.KDominant(1, preference, by), sp.TopDelta(1, preference, by)]))
    lifted = {pane: (query.lift(table), skyline.lift(table)) for pane, table in panes}
    coming = sorted(lifted)
    with tight() if data.draw(st.booleans()) else pytest.MonkeyPatch.context():
        queue, staying = (each.queue(lifted[coming[0]][0].schema, length) for each in (query, skyline))
        assert queue is not None
        assert staying is not None
        assert staying.knows_stays
        firsts = [
            first
            for first in range(coming[0] - length + 1, coming[-1] + 1)
            if within(coming, first, length) and data.draw(st.integers(0, 4))  # windows may slide by several panes
        ]
        while firsts:
            at_once = data.draw(st.integers(1, 6))
            some, firsts = firsts[:at_once], firsts[at_once:]
            for pane in [pane for pane in coming if pane < some[-1] + length]:
                coming.remove(pane)
                if any(within([pane], first, length) for first in some):
                    queue.push(pane, lifted[pane][0])
                    staying.push(pane, lifted[pane][1])
            rows, stays = staying.stays(some)
            for place, (first, answer) in enumerate(zip(some, queue.answers(some), strict=True)):
                parts, of_skyline = zip(*(lifted[pane] for pane in within(sorted(lifted), first, length)), strict=True)
                assert multiset(answer) == multiset(query.lower(query.combine(parts)))
                there = (stays.first <= place) & (place <= stays.last)
                assert multiset(rows.filter(pa.array(there))) == multiset(skyline.lower(skyline.combine(of_skyline)))
            assert len(set(stays.numbers.tolist())) == rows.num_rows


def within(panes: list[int], first: int, length: int) -> list[int]:
    """Return the panes of a window."""
    return [pane for pane in panes if first <= pane < first + length]


@pytest.mark.parametrize("by", [(), ("city",)])
@pytest.mark.parametrize("seed", range(3))
def test_stays_of_rows_that_make_room_for_others_are_not_lost(by: tuple[str, ...], seed: int, monkeypatch):
    """One call takes so many rows that a front discards those that no window needs any more, several times."""
    left: list[int] = []
    compact = Front._compact

    def counted(self: Front, which: Any) -> None:
        left.append(int(np.count_nonzero(~which)))
        compact(self, which)

    monkeypatch.setattr(Front, "_compact", counted)
    monkeypatch.setattr(front, "_LEAST_SPARE", 1)
    monkeypatch.setattr(front, "_SPARE", 1)
    rng, length = np.random.default_rng(seed), 5
    query = sp.Skyline("u MIN, v MIN, w MIN", by)
    panes = []
    for pane in range(40):
        u = rng.integers(0, 1_000, 80).astype(np.float64)
        # Few rows of a pane are better than others of it, and many than those of another pane.
        values = {"u": u, "v": rng.integers(1_000, 1_040) - u, "w": rng.integers(0, 3, 80).astype(np.float64)}
        ids, city = np.arange(pane * 80, pane * 80 + 80), rng.choice(["a", "b"], 80)
        panes.append(query.lift(pa.table({"id": ids, "city": city, **values})))
    firsts = [*range(-length + 1, 40)]
    with tight():
        answering, staying = (query.queue(panes[0].schema, length) for _ in "as")
        assert answering is not None
        assert staying is not None
        for pane, partial in enumerate(panes):
            answering.push(pane, partial)
            staying.push(pane, partial)
        rows, stays = staying.stays(firsts)
        assert sum(left) > rows.num_rows / 2
        for place, answer in enumerate(answering.answers(firsts)):
            there = (stays.first <= place) & (place <= stays.last)
            assert multiset(rows.filter(pa.array(there))) == multiset(answer)
    assert len(set(rows["id"].to_pylist())) == rows.num_rows


def test_a_filter_of_the_skyline_leaves_the_stays_open():
    schema = pa.schema([(name, pa.float64()) for name in ("price", "rating")])
    for query in (sp.KDominant(1, "price MIN, rating MAX"), sp.TopDelta(1, "price MIN, rating MAX")):
        queue = query.queue(schema, 5)
        assert queue is not None
        assert not queue.knows_stays


def test_a_preference_of_several_levels_has_no_queue():
    chain = (sp.low("price") * sp.low("cost")) & sp.high("rating")
    assert isinstance(sp.Skyline(chain), QueueQuery)
    assert sp.Skyline(chain).queue(pa.schema([("price", pa.float64())]), 5) is None


def test_few_panes_are_merged_unless_there_are_groups():
    schema = pa.schema([(name, pa.float64()) for name in ("price", "rating", "city")])
    queries = [sp.Skyline("price MIN, rating MAX", by) for by in ((), ("city",))]
    made = [query.queue(schema, FEW_PANES + more) is not None for query in queries for more in (0, 1)]
    assert made == [False, True, True, True]


def test_what_no_window_needs_any_more_is_forgotten():
    query = sp.Skyline("price MIN, rating MAX", "city")
    none = pa.schema([("price", pa.float64()), ("rating", pa.float64()), ("city", pa.int64())])
    queue = query.queue(none, 3)
    assert queue is not None
    rng = np.random.default_rng(0)
    for pane in range(120):
        keys = rng.integers(pane * 100, pane * 100 + 2_000, 2_000)  # most of them never come again
        rows = pa.table({"price": rng.random(2_000), "rating": rng.random(2_000), "city": keys})
        queue.evict_before(pane - 2)
        queue.push(pane, query.lift(rows))
        queue.answer()
    kept = queue._rows
    assert kept._rows.count < 100_000
    assert kept.keys.num_rows < 40_000


@pytest.mark.long
@pytest.mark.parametrize("draw", DISTRIBUTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("criteria", [2, 5, 12])
def test_many_rows_of_a_pane_are_answered_as_one_merge_answers_them(draw, criteria: int) -> None:
    rng = np.random.default_rng(criteria)
    names = [f"c{index}" for index in range(criteria)]
    query = sp.Skyline(sp.from_sense(names, ["min"] * criteria))
    sizes = [2_000, 2_000, 700, 2_000, 1, 2_000, 2_000, 900]
    panes = [query.lift(pa.table(dict(zip(names, draw(size, criteria, rng).T, strict=True)))) for size in sizes]
    assert_answered_as_one_merge(query, panes, 4, newest=(0, 1, 4, 5, 7))  # two and three panes come at once, too


def assert_answered_as_one_merge(
    query: sp.Skyline, panes: Sequence[pa.Table], length: int, newest: Iterable[int]
) -> None:
    """A queue answers the windows that end with these panes."""
    queue = query.queue(panes[0].schema, length)
    assert queue is not None
    begun = 0
    for pane in newest:
        first = pane - length + 1
        queue.evict_before(first)
        for coming in range(begun, pane + 1):
            queue.push(coming, panes[coming])
        begun = pane + 1
        assert multiset(queue.answer()) == multiset(query.combine(panes[max(0, first) : pane + 1]))


@pytest.mark.parametrize("values", [4, 10**6], ids=["many ties", "few ties"])
def test_many_rows_of_a_group_in_a_pane_are_answered_as_one_merge_answers_them(values: int) -> None:
    rng = np.random.default_rng(values)
    query = sp.Skyline(sp.from_sense(["x", "y", "z"], ["min"] * 3), by="group")
    panes = [
        query.lift(
            pa.table({**{name: rng.integers(0, values, 600) / 7 for name in "xyz"}, "group": rng.integers(0, 6, 600)})
        )
        for _ in range(30)
    ]
    assert_answered_as_one_merge(query, panes, 5, newest=range(30))
