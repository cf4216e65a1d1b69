"""Paper 4: continuous skyline queries on multicore architectures."""
