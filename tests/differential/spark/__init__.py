"""Random cases on Spark; see runs.py for what happens to a stream, checking.py for what must come of it."""
