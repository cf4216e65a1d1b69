"""Aggregates per key: what is asked (functions.py), of which rows (condition.py), what is kept of them (state_parts.py, wide_states.py).

    rows -> aggregate.py: one state per key and pane -> sliding_aggregates.py: merged over windows -> one row per key and window

A state is a row of an int64 matrix, which compiled kernels merge; what does not fit into integers lies beside it.
"""
