"""The papers' figures, measured again: what to run, what the paper claims of it, and whether that holds here.

figure.py     what a figure is: rows, plots, claims
registry.py   the figures by name: each is the `FIGURE` of a file in paper1/, paper2/, paper3/, paper4/, paper5/, own/
page.py       a measured figure as a person reads it, and its files
drawing.py    plots, with matplotlib
rows.py       looking up rows and figures
summary.py    what a simulated run comes to
clock.py      CPU seconds; grain.py, what a tuple costs
games.py      streams like those that paper 1 was tried on
elastic.py     paper 5's streams and costs; a run, and what it comes to
farms.py       paper 4's streams, the costs of its machine, and how its farm does with them
multiway_runs.py  paper 2's queries, and a run of a design on threads
plq_alone.py, all_streams.py   runs that several of its figures share
streams.py    the papers' streams, for the simulator
"""
