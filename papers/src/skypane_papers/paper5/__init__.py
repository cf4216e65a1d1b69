"""Paper 5, elastic preference queries: one file per figure."""
