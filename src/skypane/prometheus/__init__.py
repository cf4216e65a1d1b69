"""Metrics of running queries for Prometheus: the measures, the endpoint that serves them, a dashboard and alert rules."""
