"""What tuples hold and who sends them: points, keys, sources."""
