"""What Spark runs on here: a session with good settings, and a Java for it."""
