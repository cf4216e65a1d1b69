"""Paper 3, adaptive admission of many dynamic inputs: one file per figure."""
