"""All ways to find the skyline of a table count the same rows, and one that is slow is not run on more."""

from __future__ import annotations

import numpy as np
import pytest
from measure.bench import sql
from measure.bench.sql import OURS, WAYS, compare, line
from pyspark.sql import SparkSession
from tests.oracles import skyline_mask


@pytest.mark.long
def test_all_ways_count_the_same_rows(spark: SparkSession):
    found, size = compare(spark, 300, 3, 1, slow=set())
    assert found.sides.keys() == WAYS.keys()
    assert size == skyline_mask(np.random.default_rng(300).random((300, 3))).sum()
    assert line(3, found, size)[:2] == ["3", "300"]
    assert len(line(3, found, size)) == 2 + len(WAYS) + len(WAYS) - 1 + 1


@pytest.mark.long
def test_a_slow_way_is_left_out_with_more_rows_but_never_ours(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sql, "TOO_LONG", 0.0)
    slow: set[str] = set()
    first, _ = compare(spark, 50, 2, 2, slow)
    assert slow == WAYS.keys() - {OURS}
    assert {name: len(rounds) for name, rounds in first.sides.items()} == {
        name: 2 if name == OURS else 1 for name in WAYS
    }
    second, size = compare(spark, 60, 2, 1, slow)
    assert second.sides.keys() == {OURS}
    assert second.missing == dict.fromkeys(slow, "it took too long with fewer rows")
    assert line(2, second, size).count("-") == 2 * len(slow)


@pytest.mark.long
def test_a_way_that_counts_other_rows_is_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sql, "WAYS", {**WAYS, "moocore": lambda points: 1 + sql.by_moocore(points)})
    with pytest.raises(AssertionError, match="moocore counts other rows"):
        compare(spark, 300, 3, 1, slow=set())
