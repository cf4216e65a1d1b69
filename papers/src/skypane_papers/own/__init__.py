"""Our own questions in the form of figures: one file each."""
