"""Simulations that only the papers' figures use.

inputs.py        streams that readers share (paper 3)
skyline_farm.py  a farm of workers that maintains one skyline (paper 4)
"""
