"""Register skypane's Python data sources with Spark sessions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

#: the registered sources of each session: Spark warns about a second registration
_KNOWN: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Register a data source with a session, once."""
    known = _KNOWN.setdefault(spark, set())
    if source.name() not in known:
        # Spark checks the name in the thread's active session, which may be another one; a new thread has none.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(spark.dataSource.register, source).result()
        known.add(source.name())
