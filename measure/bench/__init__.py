"""Benchmarks, one command per claim; each compares pipelines in turn in one run, and records ratios in docs/."""
