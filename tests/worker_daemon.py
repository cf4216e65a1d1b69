"""Spark's daemon of Python workers, which has imported what tasks of tests need: a worker is a fork of it, and imports nothing.

A worker that imports all of it by itself takes two to four seconds of CPU, and each task that fails, as many of tests do, ends one.
"""

from __future__ import annotations

import pandas as pd
import pyarrow.parquet as pq
from pyspark import daemon
from pyspark.sql.pandas import serializers

from skypane.runtime.spark import batch
from skypane.runtime.spark.engine import plq, wlq
from skypane.runtime.spark.sql import table_function

IMPORTED = (pd, pq, serializers, batch, plq, wlq, table_function)

if __name__ == "__main__":
    daemon.manager()
