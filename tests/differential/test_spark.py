"""Random cases on Spark: static, as a stream with all that may happen to one, and by Spark's own window()."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.differential.draw.cases import drawn
from tests.differential.spark.checking import failure
from tests.differential.spark.runs import run
from tests.differential.spark.trying import Trying

FEW = (104, 105, 108, 109, 115, 116, 120, 126)
"""Seeds of cases of every kind that take seconds."""


@pytest.mark.parametrize("seed", FEW)
def test_spark_answers_a_random_case_as_the_definition_does(seed: int, spark: SparkSession):
    one = run(drawn(seed))
    assert failure(spark, one) is None, one


@pytest.mark.slow
def test_spark_answers_500_random_cases_as_the_definition_does(spark: SparkSession):
    del spark  # the session that is there is taken
    failed = [f"seed {one.case.seed}: {how}\n{one}" for one, how in Trying(10_000).until(3_600, 500) if how is not None]
    assert not failed, failed[0]
