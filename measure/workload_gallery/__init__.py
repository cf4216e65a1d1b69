"""Plots of every generator, parameter by parameter: `python -m measure.workload_gallery docs`."""
