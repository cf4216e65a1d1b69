"""Plots of every generator, parameter by parameter: `python -m experiments.workload_gallery docs`."""
