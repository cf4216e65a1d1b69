"""Arrival processes: rates, bursts, sources with silent periods."""
