"""Simulations that only the papers' figures run.

inputs.py        streams that readers share (paper 3)
skyline_farm.py  a farm of workers that keeps one skyline (paper 4)
"""
