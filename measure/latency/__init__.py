"""Latency against dropped rows."""
