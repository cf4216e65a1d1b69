"""Run the command `skypane` as `python -m skypane`."""

from skypane.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
