"""The Spark runtime: the engine of continuous queries, and the same queries on static DataFrames."""

from skypane.runtime.spark import versions

versions.need(versions.OLDEST, "skypane")
