"""Execution of plans: the only layer that uses clocks, files, processes and Spark."""
