"""Entry point of `skypane`: parse the command line and run the chosen command."""

from __future__ import annotations

import os
import select
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TextIO

from skypane.cli import (
    calibrate,
    compact,
    demo,
    describe,
    doctor,
    generate,
    init,
    inputs,
    monitoring,
    readmit,
    receive,
    run,
    simulate,
    top,
    warm,
    yardstick,
)
from skypane.cli.output import say
from skypane.plugins import COMMAND_GROUP, plugins
from skypane.types import ConfigError, SkypaneError

if TYPE_CHECKING:
    from argparse import _SubParsersAction


class Command(Protocol):
    """Interface of a command's module."""

    def add_parser(self, commands: _SubParsersAction[ArgumentParser], /) -> ArgumentParser:
        """Add the command's parser and return it."""

    def run(self, arguments: Namespace, /) -> int:
        """Run the command and return the exit code."""


COMMANDS: tuple[Command, ...] = (
    demo,
    init,
    run,
    top,
    readmit,
    compact,
    receive,
    inputs,
    monitoring,
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
"""Modules of the extra `cli`, and the package of each."""

_ELSEWHERE = {"reproduce": ("measure a figure of a paper again, and check the paper's claims", "skypane-papers")}
"""Commands of packages that may not be installed: the help text and the package of each."""


_PIPE_CLOSED: Final = 141
"""The exit code of a shell for a program that a closed pipe has ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0 on success, 1 on failure, 130 on an interrupt. argparse exits with 2 on wrong usage.

    The code is 141 if the reader of the output, such as `head`, reads no more.
    """
    try:
        try:
            return _main(argv)
        finally:
            if sys.stdout is not None:  # it is None in a process that was started without an output
                sys.stdout.flush()
    except BrokenPipeError:
        closed = [stream for stream in (sys.stdout, sys.stderr) if stream is not None and _is_unread(stream)]
        if not closed:  # it is another pipe that has broken
            raise
        with Path(os.devnull).open("wb") as nowhere:  # for what is left in their buffers when Python ends
            for stream in closed:
                os.dup2(nowhere.fileno(), stream.fileno())
        return _PIPE_CLOSED


def _is_unread(stream: TextIO) -> bool:
    """Return whether a stream is a pipe that nobody reads."""
    polled = select.poll()
    polled.register(stream, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in polled.poll(0))


def _main(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except SkypaneError as error:
        # SkypaneError has a message for the user. Any other exception is a bug and keeps its traceback.
        say(f"skypane: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        package = _OF_CLI.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        say(
            f"skypane: this command needs {package}, which is not installed: pip install 'skypane[cli]'",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _version() -> str:
    try:
        return version("skypane")
    except PackageNotFoundError:
        return "(not installed, run from a checkout)"


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="skypane", description="Sliding-window preference queries on PySpark.")
    parser.add_argument("--version", action="version", version=f"skypane {_version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_commands(commands)
    return parser


def add_commands(commands: _SubParsersAction[ArgumentParser]) -> None:
    """Add the commands of skypane and of plugins; a known plugin that is missing gets one that raises ConfigError."""
    for command in (*COMMANDS, *(plugin.load() for plugin in plugins(COMMAND_GROUP))):
        command.add_parser(commands).set_defaults(run=command.run)
    for name, (does, package) in _ELSEWHERE.items():
        if name not in commands.choices:
            parser = commands.add_parser(name, help=f"{does} (needs the package {package})")
            parser.add_argument("arguments", nargs=REMAINDER)
            parser.set_defaults(run=partial(_not_installed, name, package))


def _not_installed(name: str, package: str, _arguments: Namespace) -> int:
    raise ConfigError(f"`skypane {name}` needs the package {package}, which is not installed: pip install {package}")
