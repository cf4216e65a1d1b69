"""Displays and reports of a run: the live display, the log, and the HTML report with its plots."""
