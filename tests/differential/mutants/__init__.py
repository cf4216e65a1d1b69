"""Small faults, each of which some random case must show: python -m tests.differential.mutants."""
