"""Causes of losses and delays, decided by the metrics of the last batches alone (docs/diagnosis.md)."""
