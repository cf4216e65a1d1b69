"""One contract, held by every query: what the runtime relies on when it splits, retries and merges as it likes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.preference.oracle import multiset

from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.preference import Preference, Score
from skypane.preference.schema import field_of


@dataclass(frozen=True)
class CountPerKey(Query):
    """A query of a user's own: how many rows per key; the partial is one row per key."""

    key: str

    @property
    def required(self) -> Sequence[str]:
        return (self.key,)

    def validate(self, schema: pa.Schema) -> None:
        field_of(schema, self.key)

    def lift(self, rows: pa.Table) -> pa.Table:
        ones = rows.select([self.key]).append_column("rows", pa.array(np.ones(rows.num_rows, np.int64)))
        return self._summed(ones)

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        return self._summed(pa.concat_tables(partials))

    def lower(self, partial: pa.Table) -> pa.Table:
        return partial.sort_by(self.key)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([schema.field(self.key), ("rows", pa.int64())])

    def describe(self) -> dict[str, Any]:
        return {"query": "count_per_key", "key": self.key}

    def _summed(self, counts: pa.Table) -> pa.Table:
        sums = counts.group_by(self.key).aggregate([("rows", "sum")]).rename_columns([self.key, "rows"])
        return sums.cast(self.output_schema(counts.schema))


PARETO = Preference.of("price MIN, rating MAX, size AROUND 1, code MIN")
QUERIES: list[Query] = [
    Skyline(Preference.of("price MIN, rating MAX")),
    Skyline(Preference.of("price MIN, rating MAX PRIOR TO size MIN"), by=("city",)),
    Skyline(Preference.of("city DIFF, (price MIN PRIOR TO code MAX), size AROUND 1")),
    Skyline(PARETO, by=("city", "seen")),
    TopK(3, Score("rating - price")),
    TopK(1, Score("price"), by=("city",), largest=False),
    TopK(2, Score("size / price"), by=("code", "city")),
    KDominant(3, PARETO),
    KDominant(2, PARETO, by=("city",)),
    TopDelta(2, PARETO),
    TopDelta(1, PARETO, by=("city",)),
    CountPerKey("city"),
]
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "price": pa.float64(),
        "rating": pa.int32(),
        "size": pa.int64(),
        "code": pa.dictionary(pa.int8(), pa.string()),
        "city": pa.string(),
        "seen": pa.timestamp("us", tz="UTC"),
        "tags": pa.list_(pa.string()),
        "place": pa.struct({"x": pa.float64(), "y": pa.float64()}),
        "raw": pa.binary(),
    }
)
VALUES: dict[str, list[Any]] = {
    "price": [-0.0, 0.0, 1.0, 2.5, float("inf")],
    "rating": [0, 1, 2, 3],
    "size": [0, 1, 2],
    "code": ["x", "y"],
    "city": ["A", "B", None],
    "seen": [NOON, None],
    "tags": [None, [], ["a"], ["a", None]],
    "place": [None, {"x": 1.0, "y": None}],
    "raw": [b"", b"\xff"],
}


def pool(size: int) -> pa.Table:
    """Rows that windows are drawn from: few values per column, so that ties are the rule."""
    rng = np.random.default_rng(7)
    rows = [{name: values[rng.integers(len(values))] for name, values in VALUES.items()} for _ in range(size)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


POOL = pool(300)


@st.composite
def splits(draw: st.DrawFn, parts: int | None = None) -> list[pa.Table]:
    """The rows of one window, in tables of any sizes, some empty."""
    rows = draw(st.lists(st.integers(0, POOL.num_rows - 1), max_size=16))
    count = parts or draw(st.integers(1, 4))
    cuts = sorted(draw(st.integers(0, len(rows))) for _ in range(count - 1))
    return [POOL.take(pa.array(rows[a:b], pa.int64())) for a, b in pairwise([0, *cuts, len(rows)])]


each_query = pytest.mark.parametrize("query", QUERIES, ids=lambda q: f"{type(q).__name__}-{QUERIES.index(q)}")


@each_query
@given(parts=splits(), data=st.data())
def test_any_split_in_any_order_gives_the_same_rows(query: Query, parts: list[pa.Table], data: st.DataObject):
    whole = pa.concat_tables(parts)
    shuffled = whole.take(data.draw(st.permutations(range(whole.num_rows))) or pa.array([], pa.int64()))
    split = query.lower(query.combine([query.lift(part) for part in data.draw(st.permutations(parts))]))
    assert multiset(split) == multiset(query.lower(query.lift(whole))) == multiset(query.lower(query.lift(shuffled)))


@each_query
@given(parts=splits(parts=3))
def test_combine_is_associative_and_commutative(query: Query, parts: list[pa.Table]):
    a, b, c = map(query.lift, parts)
    at_once = multiset(query.combine([a, b, c]))
    assert multiset(query.combine([query.combine([a, b]), c])) == at_once
    assert multiset(query.combine([a, query.combine([b, c])])) == at_once
    assert multiset(query.combine([c, a, b])) == at_once
    assert multiset(query.combine([a])) == multiset(a)


@each_query
@given(parts=splits(parts=2))
def test_arguments_are_left_as_they_were(query: Query, parts: list[pa.Table]):
    before = [multiset(part) for part in parts]
    partials = [query.lift(part) for part in parts]
    lifted = [multiset(partial) for partial in partials]
    combined = query.combine(partials)
    whole = multiset(combined)
    query.lower(combined)
    assert [multiset(part) for part in parts] == before
    assert [multiset(partial) for partial in partials] == lifted
    assert multiset(combined) == whole


@each_query
@given(parts=splits(parts=2))
def test_rows_have_the_output_schema(query: Query, parts: list[pa.Table]):
    query.validate(SCHEMA)
    partial = query.combine([query.lift(part) for part in parts])
    assert query.lower(partial).schema == query.output_schema(SCHEMA)


@each_query
def test_no_rows(query: Query):
    empty = query.lift(SCHEMA.empty_table())
    assert query.lower(query.combine([empty, empty])).num_rows == 0


@each_query
@given(parts=splits(parts=1))
def test_a_pickled_query_answers_the_same(query: Query, parts: list[pa.Table]):
    again = pickle.loads(pickle.dumps(query))  # noqa: S301
    assert multiset(again.lower(again.lift(parts[0]))) == multiset(query.lower(query.lift(parts[0])))
    assert again.describe() == query.describe()


def test_descriptions_are_json_and_tell_queries_apart():
    described = [json.dumps(query.describe(), sort_keys=True) for query in QUERIES]
    assert [json.loads(text) for text in described] == [query.describe() for query in QUERIES]
    assert len(set(described)) == len(QUERIES)


@each_query
def test_keeps_the_protocol(query: Query):
    assert isinstance(query, Query)
    assert set(query.required) <= set(SCHEMA.names)
