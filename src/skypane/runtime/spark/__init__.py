"""The Spark runtime: the engine of continuous queries, and the same queries on static DataFrames."""
