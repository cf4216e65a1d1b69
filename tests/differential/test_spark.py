"""Random cases on Spark: static, as a stream with all that may happen to one, and by Spark's own window()."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.differential.draw.cases import KINDS
from tests.differential.spark import expressions, extremes, values
from tests.differential.spark.checking import failure
from tests.differential.spark.runs import WHERE, runs
from tests.differential.spark.streams import found
from tests.differential.spark.trying import Trying
from tests.parameters import times


@pytest.mark.parametrize("kind", ["aggregate", "continuous", "progress"])
def test_spark_answers_a_random_case_as_the_definition_does(kind: str, spark: SparkSession):
    one = next(runs(20, kind))
    assert failure(spark, one) is None, one


@pytest.mark.parametrize("seed", range(3))
def test_workers_make_of_random_expressions_what_spark_makes_of_them(seed: int, spark: SparkSession):
    found, by_workers = expressions.tried(spark.newSession(), seed, 200)
    assert (found, by_workers > 60) == ([], True)


def test_inputs_read_drawn_values_as_spark_does(spark: SparkSession):
    assert values.tried(spark.newSession(), 1, 30)[0] == []


@pytest.mark.parametrize("kind", ["bigint", "decimal(38,18)", "string"])
def test_values_at_the_ends_of_a_type_are_compared_exactly_on_every_way(kind: str, spark: SparkSession):
    assert extremes.tried(spark, [*extremes.TYPES].index(kind))[0] == []


@pytest.mark.slow
def test_windows_are_answered_in_all_places(spark: SparkSession, tmp_path: Path):
    left, some = set(WHERE), islice(runs(0, "skyline"), 40)
    while left and (one := next(some, None)) is not None:
        left -= found(spark, one, tmp_path / str(one.case.seed)).places
    assert not left, f"in 40 runs no window was answered in {sorted(left)}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_spark_answers_random_cases_of_each_kind_as_the_definition_does(kind: str, spark: SparkSession):
    del spark  # the session that is there is taken
    assert_agree(Trying(10_000, kind), times(5))


@pytest.mark.night
def test_spark_answers_many_random_cases_as_the_definition_does(spark: SparkSession):
    del spark
    assert_agree(Trying(20_000), times(250))


def assert_agree(trying: Trying, cases: int) -> None:
    failed = [f"seed {one.case.seed}: {how}\n{one}" for one, how in trying.until(3_600, cases) if how is not None]
    assert not failed, "\n\n".join(failed[:3])
