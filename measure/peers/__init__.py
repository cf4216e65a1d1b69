"""Programs of others that benchmarks run beside skypane, where they are built: WindFlow, and the C++ of paper 1."""
