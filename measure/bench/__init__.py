"""Benchmarks, one command per claim; each compares pipelines in turn in one run, and returns tables and comparisons."""
