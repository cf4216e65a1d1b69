"""Python data sources of our own, made known to sessions by their names."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

#: by session, the sources that it knows: Spark warns when it is told again
_KNOWN: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Make a data source known to a session, unless it is."""
    known = _KNOWN.setdefault(spark, set())
    if source.name() not in known:
        # Spark asks the thread's active session, whichever that is, whether the name is taken: a new thread has none.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(spark.dataSource.register, source).result()
        known.add(source.name())
