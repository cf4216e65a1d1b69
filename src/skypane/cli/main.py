"""Read the command line and hand over to a verb."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol

from skypane.cli import (
    calibrate,
    demo,
    describe,
    doctor,
    generate,
    inputs,
    receive,
    reproduce,
    run,
    simulate,
    warm,
    yardstick,
)
from skypane.types import SkypaneError

if TYPE_CHECKING:
    from argparse import _SubParsersAction


class Verb(Protocol):
    """What a verb's module offers."""

    def add_parser(self, verbs: _SubParsersAction[ArgumentParser], /) -> ArgumentParser:
        """Add the verb's own parser and return it."""

    def run(self, arguments: Namespace, /) -> int:
        """Do it, and return the exit code."""


VERBS: tuple[Verb, ...] = (
    demo,
    run,
    receive,
    inputs,
    generate,
    describe,
    simulate,
    reproduce,
    yardstick,
    doctor,
    calibrate,
    warm,
)


_OF_CLI = {
    "matplotlib": "matplotlib",
    "pydantic": "pydantic",
    "pydantic_core": "pydantic",
    "rich": "rich",
    "yaml": "PyYAML",
}
"""Modules of the extra `cli`, and the packages that they come in."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; return 0 if all is well, 1 if not, 2 for a command line that cannot be read."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except SkypaneError as error:
        # Ours are written for the user: one sentence with cause and value. Anything else is a bug and keeps its trace.
        print(f"skypane: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        package = _OF_CLI.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        print(f"skypane: this needs {package}, which is not installed: pip install 'skypane[cli]'", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _version() -> str:
    try:
        return version("skypane")
    except PackageNotFoundError:
        return "of a checkout that is not installed"


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="skypane", description="Sliding-window preference queries on PySpark.")
    parser.add_argument("--version", action="version", version=f"skypane {_version()}")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    for verb in VERBS:
        verb.add_parser(verbs).set_defaults(run=verb.run)
    return parser
