"""`skypane monitoring FOLDER`: write the files for Prometheus and Grafana that come with the package."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from pathlib import Path

from skypane.cli.output import say


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "monitoring",
        help="write a configuration and alert rules of Prometheus, and a dashboard of Grafana, to a folder",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the files are written; none is replaced")
    return parser


def run(arguments: Namespace) -> int:
    """Write the files and print their paths."""
    from skypane.prometheus.shipped_files import write  # noqa: PLC0415

    for path in write(arguments.folder):
        say(path)
    return 0
