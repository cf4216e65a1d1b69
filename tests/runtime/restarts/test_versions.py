from __future__ import annotations

import re
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from skypane.runtime.spark import versions
from skypane.types import SkypaneError


@pytest.mark.parametrize("version", ["3.5.9", "2.4", "3.10.0"])
def test_an_older_pyspark_is_refused_in_one_sentence(version: str):
    message = f"skypane needs PySpark 4.0 or newer, found {version}: run pip install 'pyspark>=4.0'"
    with pytest.raises(SkypaneError, match=f"^{re.escape(message)}$"):
        versions.need("4.0", "skypane", version)


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0.dev1", "4.10.2", "5.0.0-preview"])
def test_a_newer_one_is_not(version: str):
    versions.need("4.0", "skypane", version)


def test_rows_of_one_number_lie_together_in_any_version(spark: SparkSession):
    rows = spark.range(0, 40, 1, 2)
    of_4_0 = cast("DataFrame", SimpleNamespace(repartition=rows.repartition))
    number = sf.pmod("id", sf.lit(3)).cast("int")
    place = sf.spark_partition_id().alias("place")

    def places(frame: DataFrame) -> set[tuple[int, int]]:
        placed = versions.partitioned(frame, 3, number).select(number.alias("number"), place).distinct().collect()
        return {(row.number, row.place) for row in placed}

    assert len(places(of_4_0)) == 3
    if hasattr(rows, "repartitionById"):
        assert places(rows) == {(0, 0), (1, 1), (2, 2)}
