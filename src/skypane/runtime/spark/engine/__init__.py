"""The streaming engine: the processing of one micro-batch, and the committed state."""
