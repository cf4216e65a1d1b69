from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.operators.topk import TopK
from skypane.preference import Score
from skypane.types import ConfigError

NAN = float("nan")
ROWS = st.lists(
    st.tuples(
        st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 2.0, math.inf, NAN]),
        st.sampled_from(["A", "B", None]),
        st.sampled_from(["x", "y", None]),
    ),
    max_size=16,
)


def make(rows: list[tuple[Any, ...]]) -> pa.Table:
    a, g, payload = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "a": pa.array(a, pa.float64(), from_pandas=False),
            "g": pa.array(g, pa.string()),
            "payload": pa.array(payload, pa.string()),
        }
    )


def rank(row: tuple[Any, ...], *, largest: bool) -> tuple[Any, ...]:
    """Score best first and NaN last, then the row's columns ascending, -0.0 before 0.0, nulls last."""
    a, g, payload = row
    score = (1, 0.0) if math.isnan(a) else (0, -a if largest else a)
    number = (1, 0.0, 0) if math.isnan(a) else (0, a, int(math.copysign(1, a)))
    return (score, number, (g is None, g or ""), (payload is None, payload or ""))


def shown(rows: list[tuple[Any, ...]]) -> list[str]:
    return [repr(row) for row in rows]


def answer(query: TopK, table: pa.Table) -> list[str]:
    return shown([tuple(row.values()) for row in query.lower(query.lift(table)).to_pylist()])


@pytest.mark.parametrize("by", [(), ("g",)], ids=["all rows", "each group"])
@given(rows=ROWS, k=st.integers(1, 8), largest=st.booleans())
def test_is_the_definition(by: tuple[str, ...], rows: list[tuple[Any, ...]], k: int, largest: bool):
    groups = [[row for row in rows if row[1] == group] for group in ("A", "B", None)] if by else [rows]
    wanted = [row for some in groups for row in sorted(some, key=lambda row: rank(row, largest=largest))[:k]]
    assert answer(TopK(k, Score("a"), by=by, largest=largest), make(rows)) == shown(wanted)


@given(ROWS, st.integers(1, 8))
def test_lift_keeps_exactly_k_or_all(rows: list[tuple[Any, ...]], k: int):
    assert TopK(k, Score("a")).lift(make(rows)).num_rows == min(k, len(rows))


def test_groups_come_in_ascending_order_best_first():
    table = pa.table({"a": [1, 9, 5, 7, 7], "g": ["B", "A", "B", "B", None], "h": [1, 1, 1, 2, 0]})
    query = TopK(2, Score("a"), by=("g", "h"))
    assert query.lower(query.lift(table))["a"].to_pylist() == [9, 5, 1, 7, 7]


def test_rows_of_a_group_of_both_zeros_come_best_first():
    query = TopK(3, Score("a"), by="g")
    table = pa.table({"a": [1, 2, 3], "g": [-0.0, 0.0, -0.0]})
    assert query.lower(query.lift(table))["a"].to_pylist() == [3, 2, 1]


@pytest.mark.parametrize("score", [1.0, -1.0, 1e-300, -1e-300, 1e300])
def test_scores_that_differ_in_their_last_bit_do_not_tie(score: float):
    table = pa.table({"a": [math.nextafter(score, math.inf), score, math.nextafter(score, -math.inf)]})
    for largest, best in (True, 0), (False, 2):
        query = TopK(1, Score("a"), largest=largest)
        assert query.lower(query.lift(table))["a"].to_pylist() == [table["a"][best].as_py()]


def test_ties_beyond_the_last_place_leave_the_others_alone():
    table = pa.table({"a": [3, 2, 2, 2, 1], "tags": [["z"], ["c"], ["a"], ["b"], []]})
    query = TopK(3, Score("a"))
    assert query.lower(query.lift(table))["tags"].to_pylist() == [["z"], ["a"], ["b"]]


@pytest.mark.parametrize("n", [1, 1_000])
def test_many_rows_against_a_sort(n: int):
    rng = np.random.default_rng(n)
    a, b = rng.random(n), rng.random(n)
    table = pa.table({"a": a, "b": b, "row": np.arange(n)})
    query = TopK(50, Score("2 * a - b"))
    found = query.lower(query.combine([query.lift(table.slice(0, n // 2)), query.lift(table.slice(n // 2))]))
    assert found["row"].to_pylist() == np.argsort(b - 2 * a, kind="stable")[:50].tolist()


@pytest.mark.parametrize("k", [0, -1, 2.0, True])
def test_k_must_be_a_count(k):
    with pytest.raises(ConfigError, match=f"need a whole k >= 1, got k={k!r}"):
        TopK(k, Score("a"))


def test_text_is_taken():
    query = TopK(3, "a+b", by="g")
    assert query == TopK(3, Score("a + b"), by=("g",))
    assert query.required == ("a", "b")
    assert query.describe() == {"query": "top_k", "k": 3, "score": "a + b", "largest": True, "by": ["g"]}


def test_validate_looks_at_score_and_by():
    schema = pa.schema({"a": pa.float64(), "t": pa.list_(pa.int64())})
    TopK(1, Score("a"), by=("a",)).validate(schema)
    with pytest.raises(ConfigError, match=r"column 't' of type list<item: int64> has no order"):
        TopK(1, Score("t")).validate(schema)
    with pytest.raises(ConfigError, match=r"column 't' .* cannot form groups"):
        TopK(1, Score("a"), by=("t",)).validate(schema)
