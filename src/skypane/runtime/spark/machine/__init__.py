"""The environment of Spark on this machine: a session with suitable settings, Java, and the workers' Python."""
