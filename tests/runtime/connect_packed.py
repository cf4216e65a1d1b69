"""A scenario of a client of Spark Connect whose server lacks skypane; connect_main.py runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from tests.runtime.connect_driver import BATCHES, by_name, error_of, job
from tests.runtime.connect_features import ALL, STATIC
from tests.runtime.streams import write_batches

import skypane as sp


def packed(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Start a stream; bring the package to the server as a zip file; answer static queries, and start a stream again."""
    write_batches(folder / "in", BATCHES[:1])
    before = error_of(lambda: job(spark, folder).start())
    spark.addArtifacts(sp.pyfile(folder / "packed"), pyfile=True)
    rows = spark.createDataFrame(ALL)
    answers = {name: sorted(query(rows).toArrow()["id"].to_pylist()) for name, query in STATIC.items()}
    return {"before": before, "answers": answers, "stream": error_of(lambda: job(spark, folder).start())}


SCENARIOS: Final = by_name(packed)
