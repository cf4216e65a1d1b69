"""Sinks of answers and rejected rows, one kind per file."""
