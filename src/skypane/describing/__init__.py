"""What is in a recorded stream: its columns, the figures of the estimators about them, and plots."""
