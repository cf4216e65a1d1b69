from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from tests.kernels.strategies import correlated, grid, independent
from tests.oracles import skyline_mask
from tests.preference import oracle
from tests.preference.oracle import Tree
from tests.preference.strategies import VALUES, expressible_trees, tables, trees
from tests.rows import multiset

from skypane.preference import Preference, around, diff, from_sense, high, low
from skypane.types import BadInputError, ConfigError
from skypane.workloads.content.points import anticorrelated

CARS = pa.table({"price": [1.0, 1.0, 2.0, 3.0], "rating": [3, 3, 5, 4], "city": ["A", "A", "B", None]})


@given(expressible_trees(), tables())
def test_best_is_the_definition(tree: Tree, table: pa.Table):
    assert tree.build().best(table).tolist() == oracle.best(tree, table)


@given(trees(), tables())
def test_every_tree_is_refused_or_evaluates_to_its_definition(tree: Tree, table: pa.Table):
    try:
        preference = tree.build()
    except ConfigError:
        reject()
    assert preference.best(table).tolist() == oracle.best(tree, table)


@given(expressible_trees(), tables(), st.lists(st.sampled_from(sorted(VALUES)), max_size=3))
def test_by_compares_only_rows_that_agree(tree: Tree, table: pa.Table, by: list[str]):
    assert tree.build().best(table, by).tolist() == oracle.best(tree, table, by)


@given(expressible_trees(), tables(20), tables(20))
def test_best_of_parts_is_best_of_all(tree: Tree, a: pa.Table, b: pa.Table):
    preference = tree.build()

    def best(table: pa.Table) -> pa.Table:
        return table.take(preference.best(table))

    assert multiset(best(pa.concat_tables([best(a), best(b)]))) == multiset(best(pa.concat_tables([a, b])))


@pytest.mark.long
@pytest.mark.parametrize("d", range(1, 13))
@pytest.mark.parametrize("draw", [correlated, independent, anticorrelated, grid], ids=lambda f: f.__name__)
def test_pareto_is_the_skyline(d: int, draw: Callable[..., np.ndarray]):
    x = draw(400, d, np.random.default_rng(d))
    sense = ["min" if j % 2 == 0 else "max" for j in range(d)]
    names = [f"c{j}" for j in range(d)]
    signs = np.where([s == "min" for s in sense], 1.0, -1.0)
    table = pa.table({name: x[:, j] for j, name in enumerate(names)})
    assert from_sense(names, sense).best(table).tolist() == np.flatnonzero(skyline_mask(x * signs)).tolist()


def test_a_later_level_counts_only_among_equals():
    assert (high("rating") & low("price")).best(CARS).tolist() == [2]
    assert (low("price") & high("rating")).best(CARS).tolist() == [0, 1]


def test_values_at_the_same_distance_are_equal():
    table = pa.table({"size": [38, 42, 50], "price": [5.0, 3.0, 1.0]})
    assert (around("size", 40) & low("price")).best(table).tolist() == [1]
    assert (around("size", 40) * low("price")).best(table).tolist() == [1, 2]


def test_an_interval_is_flat_inside():
    table = pa.table({"size": [29, 30, 35, 40, 42]})
    assert around("size", (30, 40)).best(table).tolist() == [1, 2, 3]


def test_nulls_form_a_group():
    assert (diff("city") * low("price")).best(CARS).tolist() == [0, 1, 2, 3]
    assert low("price").best(CARS, by="city").tolist() == [0, 1, 2, 3]


def test_groups_alone_rank_nothing():
    assert diff("city").best(CARS).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("preference", [low("price"), low("price") & high("rating"), diff("city") * low("price")])
def test_no_rows(preference: Preference):
    assert preference.best(CARS.slice(0, 0)).tolist() == []


@pytest.mark.parametrize("preference", [low("a") * low("b"), low("b") & low("a"), (low("b") & low("a")) * low("c")])
def test_null_and_nan_are_refused_by_column(preference: Preference):
    rows = {"b": [1.0, 1.0], "c": [1.0, 2.0]}
    with pytest.raises(BadInputError, match=r"column 'a' is null in 1 row;"):
        preference.best(pa.table({"a": [1.0, None], **rows}))
    with pytest.raises(BadInputError, match=r"column 'a' is NaN in 1 row;"):
        preference.best(pa.table({"a": [1.0, float("nan")], **rows}))
