"""Records of runs of benchmarks, the machine of a run, and the pages and charts that are written from runs."""
