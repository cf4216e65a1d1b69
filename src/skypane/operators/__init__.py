"""Operators on rows, panes and windows; they use no clock, files or Spark."""
