"""What draws the tables and pictures of docs/: one command each, `python -m experiments.NAME docs`."""
