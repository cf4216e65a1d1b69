"""Elastic workers on Spark."""
