"""Streaming sources of ours: recordings and generated workloads, replayed at a pace."""
