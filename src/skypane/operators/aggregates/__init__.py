"""Aggregates per key: what is asked (functions.py), of which rows (condition.py), what is kept of them (parts.py, wide.py).

    rows -> aggregate.py: one state per key and pane -> sliding.py: merged over windows -> one row per key and window

A state is a row of an int64 matrix, which compiled kernels merge; what does not fit into integers lies beside it.
"""
