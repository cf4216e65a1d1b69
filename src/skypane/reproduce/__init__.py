"""The papers' figures, measured again: what to run, what the paper claims of it, and whether that holds here.

figure.py     what a figure is: rows, plots, claims
registry.py   the figures by name: each is the `FIGURE` of a file in paper1/, paper5/
page.py       a measured figure as a person reads it, and its files
drawing.py    plots, with matplotlib
rows.py       looking up rows and figures
summary.py    what a simulated run comes to
streams.py    the papers' streams, for the simulator
"""
