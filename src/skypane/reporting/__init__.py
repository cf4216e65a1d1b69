"""What a person sees of a run: the live display, the report with its plots, the words, the log it is drawn from."""
