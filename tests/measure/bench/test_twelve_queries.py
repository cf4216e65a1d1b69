"""The queries of paper 2 on Spark: skypane, Spark's own windows and a design of the paper in one process give equal answers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from measure.bench import twelve_queries
from measure.bench.twelve_queries import check, in_one_process, rows
from pyspark.sql import SparkSession

from skypane_papers.multiway_runs import QUERIES

TUPLES = 4_000


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_all_ways_give_equal_answers(name: str, spark: SparkSession):
    query = QUERIES[name]
    assert check(spark.createDataFrame(rows(query, TUPLES)), query, TUPLES) > 100


def test_one_answer_that_differs_is_seen(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    query = QUERIES["k-OI"]
    right = in_one_process(query, TUPLES)
    changed = right["answer"].to_numpy().copy()
    changed[7] += 1
    monkeypatch.setattr(twelve_queries, "in_one_process", lambda *_: right.set_column(2, "answer", pa.array(changed)))
    with pytest.raises(AssertionError, match="'native', 'answer'"):
        check(spark.createDataFrame(rows(query, TUPLES)), query, TUPLES)


@pytest.mark.parametrize("name", QUERIES)
def test_rows_have_the_order_in_which_all_designs_merge(name: str):
    table = rows(QUERIES[name], TUPLES).sort_by("place")
    order = [(at, source) for at, source in zip(table["at"].to_pylist(), table["input"].to_pylist(), strict=True)]
    assert order == sorted(order)
    assert pc.count_distinct(table["place"]).as_py() == table.num_rows == TUPLES
