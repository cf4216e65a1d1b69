"""Queries as table functions of SQL: the analysis of a call when Spark plans it, and the answers of its rows."""
