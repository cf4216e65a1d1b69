"""Kernels of the multiway designs: atomics, the T-Gate, the W-Hive, and what they share."""
