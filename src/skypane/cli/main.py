"""Read the command line and hand over to a verb."""

from __future__ import annotations

import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol

from skypane.cli import calibrate, demo, describe, doctor, generate, inputs, receive, run, simulate, warm, yardstick
from skypane.plugins import COMMANDS, plugins
from skypane.types import ConfigError, SkypaneError

if TYPE_CHECKING:
    from argparse import _SubParsersAction


class Command(Protocol):
    """What a verb's module offers."""

    def add_parser(self, verbs: _SubParsersAction[ArgumentParser], /) -> ArgumentParser:
        """Add the verb's own parser and return it."""

    def run(self, arguments: Namespace, /) -> int:
        """Do it, and return the exit code."""


VERBS: tuple[Command, ...] = (
    demo,
    run,
    receive,
    inputs,
    generate,
    describe,
    simulate,
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

_ELSEWHERE = {"reproduce": ("measure a figure of a paper again", "skypane-papers")}
"""Commands of packages that may not be installed: what each does, and the package that has it."""


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
    add_commands(verbs)
    return parser


def add_commands(verbs: _SubParsersAction[ArgumentParser]) -> None:
    """Add our own commands, those of other packages, and, for known ones that are not installed, one that says so."""
    for command in (*VERBS, *(plugin.load() for plugin in plugins(COMMANDS))):
        command.add_parser(verbs).set_defaults(run=command.run)
    for name, (does, package) in _ELSEWHERE.items():
        if name not in verbs.choices:
            parser = verbs.add_parser(name, help=f"{does} (needs the package {package})")
            parser.add_argument("arguments", nargs=REMAINDER)
            parser.set_defaults(run=partial(_not_installed, name, package))


def _not_installed(name: str, package: str, _arguments: Namespace) -> int:
    raise ConfigError(f"`skypane {name}` is in a package of its own, which is not installed: pip install {package}")
