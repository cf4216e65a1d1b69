"""Partials that are computed ahead of the answers: the same ones, in a session of their own."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.runtime.spark import arrow_batches
from skypane.runtime.spark.batch import LastStage, whole, windowed
from skypane.runtime.spark.partials_ahead import partials_ahead
from skypane.runtime.spark.spark_schema import arrow_schema
from skypane.windows import Windows

PARETO = Skyline(sp.low("price") * sp.high("rating"), ("shop",))
COUNTS = sp.Aggregate("shop", n=sp.count(), most=sp.max("price"))


def rows(spark: SparkSession, shop: str = "id % 7") -> DataFrame:
    return spark.range(0, 2_000, 1, 3).selectExpr(
        "cast(id * 37 % 101 AS double) AS price", "cast(id * 53 % 97 AS double) AS rating", f"{shop} AS shop",
        "timestamp_micros(id * 1000000) AS time",
    )  # fmt: skip


def stage(given: DataFrame, query: Query) -> LastStage:
    schema = arrow_schema(given)
    if isinstance(query, Skyline):
        return whole(given, schema, query, "error")
    return windowed(given, schema, Plan(query, Windows.of("10 minutes"), "time"), "error", shared=True)


@pytest.mark.core
def test_partials_are_the_same_and_lie_in_the_same_tasks(spark: SparkSession):
    of = stage(rows(spark), COUNTS)
    ahead = partials_ahead(of)
    assert ahead is not of.partials
    found, wanted = ([tuple(map(str, row)) for row in each.collect()] for each in (ahead, of.partials))
    assert Counter(found) == Counter(wanted)
    assert ahead.rdd.getNumPartitions() == of.partials.rdd.getNumPartitions()
    answers = [Counter(map(str, frame.mapInArrow(of.answer, of.columns).collect())) for frame in (ahead, of.partials)]
    assert answers[0] == answers[1]


def test_the_session_of_the_user_stays_as_it_is(spark: SparkSession):
    names = (arrow_batches.BYTES, arrow_batches.RECORDS)
    before = [spark.conf.get(name, None) for name in names]
    ahead = partials_ahead(stage(rows(spark), COUNTS))
    assert [spark.conf.get(name, None) for name in names] == before
    settings = ahead._jdf.sparkSession().conf()  # the second stage has the bounds of the user's session again
    assert settings.get(arrow_batches.RECORDS) == before[1]
    assert spark.conf.get(arrow_batches.BYTES, None) == before[0]


def test_rows_with_texts_are_sent_with_the_answers(spark: SparkSession):
    of = stage(rows(spark, "cast(id % 7 AS string)"), COUNTS)
    assert partials_ahead(of) is of.partials


def test_rows_of_one_task_are_not_kept(spark: SparkSession):
    of = stage(rows(spark), PARETO)
    assert of.lifted is None
    assert partials_ahead(of) is of.partials


def test_rows_that_cannot_be_ranked_are_reported_as_without(spark: SparkSession, tmp_path):
    given = rows(spark).selectExpr("nullif(price, 5) AS price", "rating", "shop", "time")
    for output in (None, tmp_path / "answers"):
        with pytest.raises(Exception, match="price is null"):
            sp.ask(
                given,
                sp.Aggregate("shop", most=sp.max("price"), required="price"),
                time="time",
                window="1 hour",
                output=output,
            ).collect()
    assert not (tmp_path / "answers").exists()


def test_only_rows_of_a_fixed_width_have_settings():
    assert arrow_batches.unmeasured(pa.schema([("a", pa.int64()), ("b", pa.float64())]))
    assert not arrow_batches.unmeasured(pa.schema([("a", pa.string())]))
    assert not arrow_batches.unmeasured(pa.schema([("a", pa.list_(pa.int64()))]))
