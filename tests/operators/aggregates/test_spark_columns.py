"""Spark Columns where an aggregate takes none; those of Spark Connect are made without a session."""

from __future__ import annotations

import pytest

import skypane as sp
from skypane.types import ConfigError

pytest.importorskip("grpc", reason="columns of Spark Connect")

from pyspark.sql.connect.functions import col, kurtosis


def test_an_aggregate_of_spark_is_refused_with_what_to_use_instead():
    with pytest.raises(
        ConfigError, match=r"^n= is an aggregate of Spark, .*kurtosis\(f\).*: use a function of this package"
    ):
        sp.Aggregate(n=kurtosis("f"))  # type: ignore[arg-type]


def test_a_column_as_having_is_refused_with_the_reason():
    with pytest.raises(
        ConfigError, match=r"^having= must be a text such as 'total > 100', got Column.*: workers evaluate it"
    ):
        sp.Aggregate(n=sp.count(), having=col("n") > 1)  # type: ignore[arg-type]
