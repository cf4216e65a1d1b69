"""Metrics of running queries for OpenTelemetry: instruments of the program's meter provider, by its API only."""
