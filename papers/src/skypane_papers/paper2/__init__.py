"""Paper 2, multiway aggregation: one file per group of figures."""
