"""What a task of a static query keeps goes to Java in pieces, and the answer is the same: here beyond pieces of the true size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import skypane as sp
from skypane.runtime.spark import batch

pytestmark = pytest.mark.slow


def answered(query: sp.Query, rows: pa.Table) -> pa.Table:
    """Return the answer of one task's partials, which are several."""
    lifted = [*batch._LiftAll(query, "error")(rows.to_batches(max_chunksize=60_000))]
    assert len(lifted) > 1
    return pa.Table.from_batches(batch._CombineAll(query)(lifted[::-1]), query.output_schema(rows.schema))


def test_aggregates_of_more_keys_than_a_piece_has():
    rng, n = np.random.default_rng(1), 3_200_000
    keys, values = rng.integers(0, 6_000_000, n), rng.integers(-1_000, 1_000, n)
    rows = pa.table({"key": keys, "value": values})
    query = sp.Aggregate("key", n=sp.count(), total=sp.sum("value"), most=sp.max("value"), least=sp.min("value"))
    answer = answered(query, rows).sort_by("key")
    order = np.argsort(keys, kind="stable")
    known, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
    expected = (known, counts, *(by.reduceat(values[order], starts) for by in (np.add, np.maximum, np.minimum)))
    for column, values_ in zip(answer.columns, expected, strict=True):
        assert np.array_equal(column.to_numpy(), values_)


def test_a_skyline_of_more_bytes_than_a_piece_has():
    rng, n, letters = np.random.default_rng(2), 200_000, 3_000
    better = np.arange(n)
    beaten = rng.integers(0, n, n // 10)
    low = np.concatenate([better, beaten])
    high = np.concatenate([-better, 1 - beaten])  # as good as the row that it is made of in one, worse in the other
    rows = pa.table({"low": low, "high": high, "id": np.arange(len(low))})
    rows = rows.append_column("said", pa.array(["x" * letters, "y" * letters]).take(pa.array(low % 2)))
    answer = answered(sp.Skyline("low MIN, high MIN"), rows.take(pa.array(rng.permutation(len(low)))))
    assert np.array_equal(np.sort(answer.column("id").to_numpy()), better)
