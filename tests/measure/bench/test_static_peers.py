"""The contestants of the bench of static skylines count the same rows."""

from __future__ import annotations

import pytest
from measure.bench.static_peers import CONTESTANTS, Case, frame, line, measured
from pyspark.sql import SparkSession


@pytest.mark.parametrize("case", [Case(3_000, 2), Case(2_000, 3, anticorrelated=True)], ids=str)
def test_contestants_count_the_same_skyline(spark: SparkSession, case: Case):
    rows = frame(spark, case)
    seconds = measured(rows, case, 1)  # raises AssertionError if one counts other rows
    rows.unpersist()
    assert set(seconds) == {one.name for one in CONTESTANTS if one.takes_part(case)}
    assert len(line(case, seconds)) == 3 + len(CONTESTANTS)
