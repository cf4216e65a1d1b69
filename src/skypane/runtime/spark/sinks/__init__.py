"""Where answers and rejected rows go: one kind of sink a file."""
