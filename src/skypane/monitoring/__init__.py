"""Metrics of running queries for any library of metrics: the measures, their values by labels, the queries that are watched."""
