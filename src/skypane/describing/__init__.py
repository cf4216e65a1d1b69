"""Descriptions of recorded streams: their columns, statistics by the estimators, and plots."""
