"""The command `skypane`: one subcommand per file, each with `add_parser` and `run`."""
