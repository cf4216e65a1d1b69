"""The command `skypane`: one verb per file, each with `add_parser` and `run`."""
