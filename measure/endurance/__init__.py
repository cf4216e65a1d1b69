"""Thousands of small batches."""
