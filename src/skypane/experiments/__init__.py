"""Runs that show what the package does, and the reports they leave: the demo, recorded streams, tables."""
