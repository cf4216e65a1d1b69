"""The streaming engine: what happens to one micro-batch, and what is remembered of it."""
