"""AqKSlack compared with K-slack and the best fixed delay."""
