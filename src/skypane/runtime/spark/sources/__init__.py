"""Streaming sources of skypane: many inputs, recordings, and generated workloads."""
