"""Keys divide a window: each key is in one part, whatever it is made of, and the parts together answer as the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.aggregates.tables import SCHEMA, VALUES
from tests.rows import multiset

import skypane as sp
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.key_parts import have_parts, rows_of_part
from skypane.operators.query import DivisibleQuery, Query
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK

QUERIES: tuple[Query, ...] = (
    Skyline("x MIN, y MAX", by=("key", "grade")),
    Skyline("x MIN, y MAX PRIOR TO i MIN", by="flag"),
    Skyline("key DIFF, x MIN, y MIN"),
    TopK(2, "x + y", by=("grade", "key")),
    KDominant(1, "x MIN, y MIN", by="text"),
    TopDelta(1, "x MIN, y MIN", by=("key", "at")),
    sp.Aggregate(("key", "grade"), n=sp.count(), total=sp.sum("x")),
)
each_query = pytest.mark.parametrize(
    "query", QUERIES, ids=lambda query: f"{type(query).__name__}-{QUERIES.index(query)}"
)


def rows_of(size: int, seed: int) -> pa.Table:
    """Rows with ties, nulls, NaNs and both zeros in the columns of groups, and points in x and y."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        name: pa.array([values[place] for place in rng.integers(0, len(values), size)], SCHEMA.field(name).type)
        for name, values in VALUES.items()
    }
    # Preferences need values; there are few, so that ties are the rule, or many.
    few = rng.random() < 0.5
    points = rng.integers(0, 5, (2, size)).astype(float) if few else rng.random((2, size))
    columns |= {"x": points[0], "y": points[1], "i": pa.array(rng.integers(0, 3, size))}
    return pa.table(columns)


@each_query
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4), parts=st.integers(2, 7), seed=st.integers(0, 2**32 - 1)
)
def test_the_parts_of_a_window_answer_as_the_whole(query: Query, sizes: Sequence[int], parts: int, seed: int):
    assert_divided(query, [query.lift(rows_of(size, seed + at)) for at, size in enumerate(sizes)], parts)


@each_query
def test_windows_beyond_every_block_are_divided_as_well(query: Query):
    assert_divided(query, [query.lift(rows_of(size, size)) for size in (70_001, 1, 4_097)], 5)


def assert_divided(query: Query, partials: Sequence[pa.Table], parts: int) -> None:
    """Each row of each partial is in one part, and the answers of the parts are the answer of the whole."""
    assert isinstance(query, DivisibleQuery)
    assert query.divisible(rows_of(1, 0).schema)
    divided = [[query.part_of(partial, part, parts) for partial in partials] for part in range(parts)]
    for at, partial in enumerate(partials):
        assert sum(part[at].num_rows for part in divided) == partial.num_rows
    answers = pa.concat_tables([query.lower(query.combine(part)) for part in divided])
    assert multiset(answers) == multiset(query.lower(query.combine(partials)))


@pytest.mark.parametrize(
    "query", [Skyline("x MIN, y MIN"), TopK(3, "x"), KDominant(1, "x MIN, y MIN"), TopDelta(1, "x MIN, y MIN")]
)
def test_a_query_without_groups_is_not_divided(query: Any):
    assert not query.divisible(rows_of(1, 0).schema)


def test_keys_without_a_hash_are_not_divided():
    schema = pa.schema([("place", pa.struct([("x", pa.int64())])), ("n", pa.int64())])
    assert not have_parts(schema, ("place",))
    assert have_parts(schema, ("n",))
    assert not have_parts(schema, ())


@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_equal_keys_are_in_one_part_in_whatever_table(size: int, parts: int, seed: int):
    rows, by = rows_of(size, seed), ("key", "grade")
    shuffled = rows.take(pa.array(np.random.default_rng(seed).permutation(size)))
    for part in range(parts):
        assert multiset(rows_of_part(rows, by, part, parts)) == multiset(rows_of_part(shuffled, by, part, parts))
