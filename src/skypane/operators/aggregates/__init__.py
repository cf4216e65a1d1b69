"""Aggregates per key: functions (functions.py), conditions (condition.py), states (state_parts.py, wide_states.py).

    rows -> aggregate.py: state per key and pane -> sliding_aggregates.py: merged by window -> row per key and window

A state is a row of an int64 matrix, which compiled kernels merge; values other than integers are kept beside it.
"""
