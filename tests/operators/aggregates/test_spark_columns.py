"""Spark Columns where an aggregate takes none; those of Spark Connect are made without a session."""

from __future__ import annotations

import pickle

import pyarrow as pa
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


def test_workers_refuse_a_column_as_having_with_the_reason():
    query = sp.Aggregate(n=sp.count(), having=col("n") > 1)
    assert query.choice.by_spark == ">(n, 1)"
    with pytest.raises(
        ConfigError, match=r"^having= is a Spark Column, >\(n, 1\), which only Spark evaluates, and this"
    ):
        query.validate(pa.schema([("f", pa.float64())]))


def test_a_query_with_a_column_is_a_value_that_can_be_pickled():
    query = sp.Aggregate(n=sp.count(), having=col("n") > 1)
    assert query == sp.Aggregate(n=sp.count(), having=col("n") > 1)
    assert query.describe()["having"] == ">(n, 1)"
    assert pickle.loads(pickle.dumps(query)).describe() == query.describe()  # noqa: S301 - its own
