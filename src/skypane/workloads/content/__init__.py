"""The contents of tuples and their senders: points, keys, sources."""
