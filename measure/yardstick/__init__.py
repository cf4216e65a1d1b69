"""AqKSlack against K-slack and the best fixed delay."""
