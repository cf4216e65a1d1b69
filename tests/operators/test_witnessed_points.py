"""Rows that a prefilter drops: the answer without them is the same, or the points are found to have no witness."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from tests.operators.dropping import as_good, drops
from tests.preference.oracle import Tree
from tests.preference.strategies import VALUES, expressible_trees, tables
from tests.rows import multiset

import skypane as sp
from skypane.operators.witnessed_points import LEAST_SHARE, MOST, Prefilter, prefilter_of
from skypane.types import ConfigError

BY = st.lists(st.sampled_from(sorted(VALUES)), max_size=2)


def kept_by(rules: Prefilter, points: pa.Table, rows: pa.Table) -> pa.Table:
    strong = points.to_pylist()
    kept = [i for i, row in enumerate(rows.to_pylist()) if not any(drops(rules, point, row) for point in strong)]
    return rows.take(pa.array(kept, pa.int64()))


def rules_of(query: sp.Query, schema: pa.Schema) -> Prefilter:
    rules = prefilter_of(query, schema)
    assert rules is not None
    return rules


def asked(written: Tree, by: list[str], schema: pa.Schema) -> tuple[sp.Skyline, Prefilter]:
    query = sp.Skyline(written.build(), by)
    try:
        query.validate(schema)
    except ConfigError:
        reject()  # ranks a text
    rules = prefilter_of(query, schema)
    assume(rules is not None)
    assert rules is not None
    return query, rules


@given(expressible_trees(), BY, tables(20), tables(6), st.booleans())
def test_whatever_the_points_the_answer_is_exact_or_a_point_has_no_witness(written, by, rows, points, known):
    """The points are any rows: those of another table, or of one that has changed; or also rows of this one."""
    query, rules = asked(written, by, rows.schema)
    points = pa.concat_tables([points, rows.slice(0, 3)]) if known else points
    kept = query.lift(kept_by(rules, points, rows))
    if rules.without_witness(points, kept) == 0:
        assert multiset(kept) == multiset(query.lift(rows))


@given(expressible_trees(), BY, tables(20), st.data())
def test_points_that_are_rows_have_witnesses(written, by, rows, data):
    query, rules = asked(written, by, rows.schema)
    chosen = data.draw(st.sets(st.integers(0, rows.num_rows - 1))) if rows.num_rows else set()
    points = rows.take(pa.array(sorted(chosen), pa.int64()))
    assert rules.without_witness(points, query.lift(kept_by(rules, points, rows))) == 0


@given(expressible_trees(), BY, tables(20), tables(4))
def test_a_point_without_a_row_that_is_as_good_is_counted(written, by, rows, points):
    query, rules = asked(written, by, rows.schema)
    known = rows.to_pylist()
    missing = [point for point in points.to_pylist() if not any(as_good(rules, row, point) for row in known)]
    assert rules.without_witness(points, query.lift(rows)) == len(missing)


@given(expressible_trees(), BY, tables(40))
def test_the_points_of_a_sample_are_rows_of_it_that_drop_many_of_them(written, by, rows):
    _, rules = asked(written, by, rows.schema)
    points = rules.choose(rows)
    assert points.schema.names == list(rules.columns)
    assert points.num_rows <= MOST
    assert set(map(repr, points.to_pylist())) <= set(map(repr, rows.select(rules.columns).to_pylist()))
    if points.num_rows:
        assert kept_by(rules, points, rows).num_rows <= (1 - LEAST_SHARE) * rows.num_rows + 1e-6


def test_rows_that_cannot_be_ranked_never_become_points():
    rows = pa.table({"x": [None, float("nan"), 1.0, 2.0, 3.0, 4.0], "y": [0.0, 0.0, 1.0, 2.0, 3.0, None]})
    rules = rules_of(sp.Skyline("x MIN, y MIN"), rows.schema)
    assert rules.choose(rows).to_pylist() == [{"x": 1.0, "y": 1.0}]


def test_a_row_of_one_group_is_not_a_witness_in_another():
    rows = pa.table({"x": [1.0, 5.0], "city": ["A", None]})
    rules = rules_of(sp.Skyline("x MIN", by="city"), rows.schema)
    assert rules.without_witness(pa.table({"x": [1.0, 6.0], "city": ["A", None]}), rows) == 0
    assert rules.without_witness(pa.table({"x": [1.0, 2.0], "city": ["B", None]}), rows) == 2


class Kept(sp.Skyline):
    """A skyline whose lift could keep more."""


NUMBERS = pa.schema({"f": pa.float64(), "i": pa.int32(), "n": pa.int64(), "d": pa.decimal128(9, 2)})


@pytest.mark.parametrize("query", [
    sp.TopK(3, "f"), sp.Aggregate("i", n=sp.count()), Kept("f MIN"),
    sp.Skyline(sp.around("n", 3)), sp.Skyline(sp.around("d", 3)), sp.Skyline(sp.around("i", 2**53)),
])  # fmt: skip
def test_no_rows_are_dropped_for_queries_and_distances_that_spark_could_see_otherwise(query):
    assert prefilter_of(query, NUMBERS) is None


@pytest.mark.parametrize("query", [
    sp.Skyline("f MIN, i MAX"), sp.KDominant(1, "f MIN, i MAX"), sp.TopDelta(1, "f MIN, i MAX"),
])  # fmt: skip
def test_dominance_queries_drop_what_is_on_no_skyline(query):
    rules = rules_of(query, NUMBERS)
    assert (rules.columns, rules.lead) == (("f", "i"), 0)


def test_a_point_has_to_be_strictly_better_where_ties_are_rare():
    rules = rules_of(sp.Skyline("i MIN, n MAX, d MIN"), NUMBERS)
    assert rules.lead == 2
    assert rules.required == ("i", "n", "d")


def test_further_levels_are_required_and_not_compared():
    query = sp.Skyline(sp.low("f") & (sp.high("i") * sp.low("n")))
    rules = rules_of(query, NUMBERS)
    assert (rules.columns, rules.unread) == (("f",), ("i", "n"))
    rows = pa.table({"f": [1.0, 1.0, 2.0], "i": [1, 2, 9], "n": [0, 0, 0], "d": [Decimal(1)] * 3})
    assert rules.without_witness(pa.table({"f": [1.0]}), query.lift(rows)) == 0
