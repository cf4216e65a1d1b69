"""The papers' figures, measured again: what is run, what the paper claims, and whether the claims hold here.

figure.py     a figure: rows, plots, claims
registry.py   the figures by name: each is the `FIGURE` of a file in paper1/, paper2/, paper3/, paper4/, paper5/, own/
page.py       the text and files of a measured figure
drawing.py    plots, with matplotlib
rows.py       look up rows and values
summary.py    means of a simulated run
clock.py      CPU seconds
grain.py      cost of a tuple
games.py      streams like those of paper 1's experiments
elastic.py    paper 5's streams and costs, runs and their summaries
farms.py      paper 4's streams, the costs of its machine, and runs of its farm
multiway_runs.py  paper 2's queries, and runs of a design on threads
plq_alone.py, all_streams.py   runs that several figures of paper 5 share
streams.py    the papers' streams, for the simulator
"""
