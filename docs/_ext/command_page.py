"""The mark `<!-- command line -->`: the help text of each command."""

from __future__ import annotations

from argparse import ArgumentParser, HelpFormatter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from sphinx.application import Sphinx

from skypane.cli.main import add_commands

MARK: Final = "<!-- command line -->"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("source-read", _expand)
    return {"parallel_read_safe": True}


def _expand(_app: Sphinx, _page: str, source: list[str]) -> None:
    if MARK in source[0]:
        source[0] = source[0].replace(MARK, "\n".join(_commands()))


def _commands() -> Iterator[str]:
    commands = ArgumentParser(prog="skypane").add_subparsers(prog="skypane")
    add_commands(commands)
    for name, parser in sorted(commands.choices.items()):
        parser.formatter_class = partial(HelpFormatter, width=72)
        yield from (f"## `skypane {name}`", "", "```text", parser.format_help().rstrip(), "```", "")
