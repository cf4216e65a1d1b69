"""Paper 1, burst-tolerant preference queries over out-of-order streams: one file per figure."""
