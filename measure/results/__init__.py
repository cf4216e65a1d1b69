"""What benchmarks have found, kept: records of a run, the machine it ran on, and the pages and charts that are written from it."""
