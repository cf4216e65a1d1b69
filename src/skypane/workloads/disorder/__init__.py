"""Delays between the event time and the arrival of tuples."""
