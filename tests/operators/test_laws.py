"""One contract, held by every query: what the runtime relies on when it splits, retries and merges as it likes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operators.aggregates.tables import drawn
from tests.rows import Counts, multiset

from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query, lift_panes
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.preference import Preference, Score
from skypane.testing import check_query
from skypane.types import ConfigError

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
    Counts("city"),
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


#: what windows are drawn from: few values per column, so that ties are the rule
POOL = drawn(np.random.default_rng(7), 300, VALUES, SCHEMA)


@st.composite
def splits(draw: st.DrawFn, parts: int | None = None) -> list[pa.Table]:
    """The rows of one window, in tables of any sizes, some empty."""
    rows = draw(st.lists(st.integers(0, POOL.num_rows - 1), max_size=16))
    count = parts or draw(st.integers(1, 4))
    cuts = sorted(draw(st.integers(0, len(rows))) for _ in range(count - 1))
    return [POOL.take(pa.array(rows[a:b], pa.int64())) for a, b in pairwise([0, *cuts, len(rows)])]


each_query = pytest.mark.parametrize("query", QUERIES, ids=lambda q: f"{type(q).__name__}-{QUERIES.index(q)}")


@pytest.mark.long
@each_query
@given(parts=splits())
def test_keeps_the_laws(query: Query, parts: list[pa.Table]):
    check_query(query, pa.concat_tables(parts), tries=3)


BREAKS: dict[str, tuple[Any, str]] = {
    "the first row only": (lambda rows: rows.slice(0, 1), "any split|equals p"),
    "one row more": (lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), "any split|associative|equals p"),
}


@pytest.mark.parametrize(("combined", "law"), BREAKS.values(), ids=BREAKS)
def test_the_kit_names_the_law_that_is_broken(combined: Callable[[pa.Table], pa.Table], law: str):
    class Broken(Counts):
        def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
            return combined(pa.concat_tables(partials))

    with pytest.raises(AssertionError, match=f"breaks a law: .*({law})"):
        check_query(Broken("city"), POOL)


class Secretive(Counts):
    """Counts rows of a price twice where it sees one, and says that it reads the key alone."""

    def lift(self, rows: pa.Table) -> pa.Table:
        counted = super().lift(rows)
        return self.combine([counted, counted]) if "price" in rows.column_names else counted


def test_the_kit_finds_a_query_that_reads_more_than_it_declares():
    with pytest.raises(AssertionError, match=r"columns beyond required and reads\(\)"):
        check_query(Secretive("city"), POOL)


class BulkCount(Counts):
    """The same counts, with all panes lifted by one aggregation."""

    def lift_panes(self, rows: pa.Table, starts: Sequence[int]) -> Sequence[pa.Table]:
        sizes = np.diff([*starts, rows.num_rows])
        tagged = rows.select([self.key]).append_column("pane", pa.array(np.repeat(np.arange(len(starts)), sizes)))
        counted = tagged.group_by(["pane", self.key]).aggregate([([], "count_all")]).sort_by("pane")
        panes = counted["pane"].to_numpy()
        kept = counted.select([self.key, "count_all"])
        edges = np.searchsorted(panes, np.arange(len(starts) + 1)).tolist()
        return [kept.slice(begin, end - begin) for begin, end in pairwise(edges)]


def test_a_bulk_lift_is_held_to_the_laws_too():
    check_query(BulkCount("city"), POOL)


@given(parts=splits(parts=3))
def test_a_query_with_a_bulk_lift_lifts_many_panes_at_once(parts: list[pa.Table]):
    panes = [part for part in parts if part.num_rows]
    one_by_one, at_once = lift_panes(Counts("city"), panes), lift_panes(BulkCount("city"), panes)
    assert list(map(multiset, one_by_one)) == list(map(multiset, at_once))


def test_a_bulk_lift_that_loses_a_pane_is_found_where_it_happens():
    class Losing(BulkCount):
        def lift_panes(self, rows: pa.Table, starts: Sequence[int]) -> Sequence[pa.Table]:
            return super().lift_panes(rows, starts)[1:]

    with pytest.raises(ConfigError, match=r"Losing\.lift_panes returned 2 partials for 3 panes"):
        lift_panes(Losing("city"), [POOL, POOL, POOL])


def test_descriptions_are_json_and_distinguish_queries():
    described = [json.dumps(query.describe(), sort_keys=True) for query in QUERIES]
    assert [json.loads(text) for text in described] == [query.describe() for query in QUERIES]
    assert len(set(described)) == len(QUERIES)


@each_query
def test_keeps_the_protocol(query: Query):
    assert isinstance(query, Query)
    assert set(query.required) <= set(SCHEMA.names)
