"""Check the laws of a query on given rows.

def test_my_query_keeps_the_laws():
    check_query(MyQuery("city"), rows)
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from skypane.operators.query import BulkQuery, DivisibleQuery, Query, check_implements

Law = Callable[[Query, Sequence[pa.Table]], bool]


def check_query(query: Query, rows: pa.Table, *, tries: int = 20, seed: int = 0) -> None:
    """Raise AssertionError, which names the law, if `query` breaks one on `rows`, shuffled and cut `tries` times.

    The rows should have many ties, nulls where they are allowed, and several values per group; otherwise they may not
    reveal a broken law. Raise ConfigError if the query cannot answer rows of this schema.
    """
    check_implements(query)
    query.validate(rows.schema)
    rng = np.random.default_rng(seed)
    for _ in range(tries):
        shuffled = rows.take(pa.array(rng.permutation(rows.num_rows), pa.int64()))
        cuts = sorted(rng.integers(0, rows.num_rows + 1, rng.integers(0, 4)).tolist())
        edges = [0, *cuts, rows.num_rows]
        parts = [shuffled.slice(begin, end - begin) for begin, end in pairwise(edges)]
        for law, keeps in LAWS.items():
            if not keeps(query, parts):
                sizes = ", ".join(str(part.num_rows) for part in parts)
                raise AssertionError(f"{query!r} breaks a law: {law}; with rows cut into parts of {sizes}")


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Return whether two tables have the same multiset of rows; NaN equals itself, and -0.0 differs from 0.0."""
    return multiset(one) == multiset(other)


def multiset(rows: pa.Table) -> Counter[str]:
    """Return how often each row is in a table."""
    return Counter(map(repr, rows.to_pylist()))


def _answer(query: Query, rows: pa.Table) -> pa.Table:
    return query.lower(query.combine([query.lift(rows)]))


def _any_split(query: Query, parts: Sequence[pa.Table]) -> bool:
    split = query.lower(query.combine([query.lift(part) for part in parts]))
    return same_rows(split, _answer(query, pa.concat_tables(parts)))


def _associative(query: Query, parts: Sequence[pa.Table]) -> bool:
    first, *rest = [query.lift(part) for part in parts]
    if not rest:
        return True
    nested = query.combine([first, query.combine(rest)])
    return same_rows(nested, query.combine([first, *rest]))


def _commutative(query: Query, parts: Sequence[pa.Table]) -> bool:
    partials = [query.lift(part) for part in parts]
    return same_rows(query.combine(partials), query.combine(partials[::-1]))


def _alone(query: Query, parts: Sequence[pa.Table]) -> bool:
    partial = query.lift(parts[0])
    return same_rows(query.combine([partial]), partial)


def _arguments_kept(query: Query, parts: Sequence[pa.Table]) -> bool:
    before = [multiset(part) for part in parts]
    partials = [query.lift(part) for part in parts]
    lifted = [multiset(partial) for partial in partials]
    combined = query.combine(partials)
    whole = multiset(combined)
    query.lower(combined)
    unchanged = [multiset(part) for part in parts] == before and multiset(combined) == whole
    return unchanged and [multiset(partial) for partial in partials] == lifted


def _schema(query: Query, parts: Sequence[pa.Table]) -> bool:
    schema: pa.Schema = _answer(query, pa.concat_tables(parts)).schema
    return bool(schema == query.output_schema(parts[0].schema))


def _none_of_none(query: Query, parts: Sequence[pa.Table]) -> bool:
    empty = query.lift(parts[0].schema.empty_table())
    rows: int = query.lower(query.combine([empty, empty])).num_rows
    return rows == 0


def _pickled(query: Query, parts: Sequence[pa.Table]) -> bool:
    again = pickle.loads(pickle.dumps(query))  # noqa: S301 - pickled in this line
    rows = pa.concat_tables(parts)
    return again.describe() == query.describe() and same_rows(_answer(again, rows), _answer(query, rows))


def _described(query: Query, parts: Sequence[pa.Table]) -> bool:
    del parts
    described = query.describe()
    return bool(json.loads(json.dumps(described)) == described)


def _reads_enough(query: Query, parts: Sequence[pa.Table]) -> bool:
    rows = pa.concat_tables(parts)
    read = {*query.required, *query.reads(rows.schema)}
    return same_rows(
        _answer(query, rows.select([name for name in rows.column_names if name in read])), _answer(query, rows)
    )


def _bulk(query: Query, parts: Sequence[pa.Table]) -> bool:
    if not isinstance(query, BulkQuery):
        return True
    panes = [part for part in parts if part.num_rows]
    if not panes:
        return True
    starts = np.cumsum([0, *(pane.num_rows for pane in panes[:-1])]).tolist()
    at_once = query.lift_panes(pa.concat_tables(panes), starts)
    return len(at_once) == len(panes) and all(
        same_rows(partial, query.lift(pane)) for partial, pane in zip(at_once, panes, strict=True)
    )


def _divided(query: Query, parts: Sequence[pa.Table]) -> bool:
    if not isinstance(query, DivisibleQuery) or not query.divisible(parts[0].schema):
        return True
    partials = [query.lift(part) for part in parts]
    shares = [query.lower(query.combine([query.part_of(one, number, 3) for one in partials])) for number in range(3)]
    return same_rows(pa.concat_tables(shares), query.lower(query.combine(partials)))


LAWS: Final[dict[str, Law]] = {
    "any split of a window's rows, in any order, gives the same answer": _any_split,
    "combine is associative": _associative,
    "combine is commutative": _commutative,
    "combine([p]) equals p": _alone,
    "no method writes to its arguments": _arguments_kept,
    "answers have the schema output_schema()": _schema,
    "an input without rows gives an answer without rows": _none_of_none,
    "a pickled query gives the same answers": _pickled,
    "describe() returns a JSON value": _described,
    "columns beyond required and reads() make no difference": _reads_enough,
    "lift_panes() gives the same partials as lift() for each pane": _bulk,
    "the answers of all part_of() together equal the whole answer": _divided,
}
