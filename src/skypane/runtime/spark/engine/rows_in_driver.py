"""The rows of a batch in the driver, if they are few: Spark sends a bounded number of rows from each partition."""

from __future__ import annotations

import logging
from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from skypane.runtime.spark.machine.java_errors import Py4JJavaError

log = logging.getLogger(__name__)

MOST: Final = 100_000
"""Rows that Spark sends from a partition, at most: more than expected may come at once, but not more than fit into the driver."""
_ROW_OF_PARTITION: Final = (1 << 33) - 1
"""The bits of monotonically_increasing_id() that number the rows of a partition, from 0."""
_TOO_LARGE: Final = "spark.driver.maxResultSize"
"""The setting that Spark names if it refuses to send a result to the driver."""


def few_rows(rows: DataFrame) -> pa.Table | None:
    """Return all rows of a batch; None if they may be too many for the driver, by their number, their bytes or its memory."""
    try:
        table = rows.where(f"(monotonically_increasing_id() & {_ROW_OF_PARTITION}) < {MOST}").toArrow()
        if table.num_rows < MOST:
            return table
        because = f"{table.num_rows} rows and more"
    except MemoryError as error:
        because = str(error) or "no memory"
    except (PySparkException, Py4JJavaError) as error:
        if _TOO_LARGE not in str(error):
            raise
        because = _TOO_LARGE
    log.info("a batch has more rows than the driver takes (%s): workers read it again", because)
    return None
