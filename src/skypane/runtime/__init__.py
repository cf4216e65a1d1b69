"""Drivers of a plan: the only layer that knows clocks, files, processes and Spark."""
