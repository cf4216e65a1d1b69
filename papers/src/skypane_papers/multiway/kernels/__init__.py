"""Kernels of the multiway designs: atomics, T-Gate, W-Hive, queues, winsets, pane tables and texts."""
