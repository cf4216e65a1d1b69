from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from skypane.runtime.spark import versions
from skypane.types import SkypaneError


@pytest.mark.parametrize("version", ["3.5.9", "2.4", "3.10.0"])
def test_an_older_pyspark_is_refused_in_one_sentence(version: str):
    told = f"skypane needs PySpark 4.0 or newer, found {version}: run pip install 'pyspark>=4.0'"
    with pytest.raises(SkypaneError, match=f"^{re.escape(told)}$"):
        versions.need("4.0", "skypane", version)


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0.dev1", "4.10.2", "5.0.0-preview"])
def test_a_newer_one_is_not(version: str):
    versions.need("4.0", "skypane", version)


def test_rows_of_one_number_lie_together_in_any_version(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    rows = spark.range(0, 40, 1, 2)
    number = sf.pmod("id", sf.lit(3)).cast("int")
    place = sf.spark_partition_id().alias("place")

    def places() -> set[tuple[int, int]]:
        placed = versions.partitioned(rows, 3, number).select(number.alias("number"), place).distinct().collect()
        return {(row.number, row.place) for row in placed}

    if hasattr(rows, "repartitionById"):
        assert places() == {(0, 0), (1, 1), (2, 2)}
        monkeypatch.delattr(type(rows), "repartitionById")
    assert len(places()) == 3
