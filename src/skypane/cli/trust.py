"""The option by which whoever starts a job says whose code it may run."""

from __future__ import annotations

from argparse import ArgumentParser


def allow(parser: ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="MODULE",
        help="let the job file name functions of this Python module, which is imported: once for each module",
    )
