"""The option --allow, which lists the modules whose code a job file may run."""

from __future__ import annotations

from argparse import ArgumentParser


def allow(parser: ArgumentParser) -> None:
    """Add the option --allow to `parser`."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this Python module and let the job file use its functions; repeat for each module",
    )
