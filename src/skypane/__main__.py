"""`python -m skypane` is the command `skypane`."""

from skypane.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
