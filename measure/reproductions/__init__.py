"""Measure the papers' figures again, with a verdict on each claim: docs/reproductions.md."""
