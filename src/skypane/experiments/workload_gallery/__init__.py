"""Plots of every generator, parameter by parameter: `python -m skypane.experiments.workload_gallery docs`."""
