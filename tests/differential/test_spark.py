"""Random cases on Spark: static, as a stream with all that may happen to one, and by Spark's own window()."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.differential.draw.cases import KINDS
from tests.differential.spark.checking import failure
from tests.differential.spark.runs import runs
from tests.differential.spark.trying import Trying


@pytest.mark.parametrize("kind", KINDS)
def test_spark_answers_a_random_case_as_the_definition_does(kind: str, spark: SparkSession):
    one = next(runs(20, kind))
    assert failure(spark, one) is None, one


@pytest.mark.slow
def test_spark_answers_500_random_cases_as_the_definition_does(spark: SparkSession):
    del spark  # the session that is there is taken
    failed = [f"seed {one.case.seed}: {how}\n{one}" for one, how in Trying(10_000).until(3_600, 500) if how is not None]
    assert not failed, "\n\n".join(failed[:3])
