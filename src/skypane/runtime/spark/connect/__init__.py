"""Streams over Spark Connect: the engine runs in a Python process beside the server, the handle in the client."""
