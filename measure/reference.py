"""The tables of docs/reference.md, from the registries: `python -m measure.reference docs`."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import skypane as sp
from measure.tables import markdown_table, replace_between
from skypane.cli.main import add_commands
from skypane.control.elasticity import registry as elasticity
from skypane.control.elasticity.options import Elasticity
from skypane.control.splitting import POLICIES
from skypane.jobs.output_section import SINKS
from skypane.jobs.query_section import QUERIES
from skypane.operators.aggregates import registry as functions
from skypane.plugins import Registered
from skypane.progress import registry as progress
from skypane.runtime.spark.sinks import registry as sinks
from skypane.runtime.spark.sources.many.discovery import KINDS
from skypane.runtime.spark.sources.source_names import SOURCES

_SHARED: Final = frozenset(item.name for item in fields(Elasticity))
"""Options that all elasticity policies take."""
_LISTED: Final = (elasticity, functions, progress, sinks)


def tables() -> dict[str, str]:
    """Return each table by its mark."""
    return {
        "queries": _table(("query", "in job files", "answers"), (
            (_call(query), f"`kind: {word}`", _first(query)) for word, query in QUERIES.items())),
        "functions": _table(("function", "value"), (
            (_call(function), _first(function)) for function in Registered(functions).values())),
        "policies": _table(("policy", "in job files", "what it does"), (
            (_call(policy), f"`policy: {name.lower()}`", _first(policy)) for name, policy in Registered(progress).items())),
        "elasticity": _table(("policy", "in job files", "what it does"), (
            (_call(policy, _SHARED), f"`policy: {name.lower()}`", _first(policy)) for name, policy in Registered(elasticity).items())),
        "splitting": _table(("name", "what it does"), (
            (f"`{name}`", _first(type(policy))) for name, policy in POLICIES.items())),
        "sinks": _table(("sink", "in job files", "what it does"), (
            (_call(sink), _formats(sink), _first(sink)) for sink in Registered(sinks).values())),
        "sources": _table(("name in job files",), ((f"`{name}`",) for name in SOURCES)),
        "inputs": _table(("key", "what such an input is"), (
            (f"`{key}`", _first(kind)) for key, kind in KINDS.items())),
        "names": _table(("name", "what it is"), (
            (f"`{name}`", _first(value)) for name, value in _others().items())),
        "commands": _table(("command", "what it does"), sorted(_commands())),
    }  # fmt: skip


def _table(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    return markdown_table(head, [[cell.replace("|", "\\|") for cell in line] for line in lines])


def _call(thing: Any, left_out: Collection[str] = ("holds",)) -> str:
    """Return how it is called: parameters that may be left out have a default, or an ellipsis where it is long."""
    told = []
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.name in left_out:
            continue
        name = f"{'**' if parameter.kind is parameter.VAR_KEYWORD else ''}{parameter.name}"
        name = f"*{name}" if parameter.kind is parameter.VAR_POSITIONAL else name
        if parameter.default is not parameter.empty:
            default = repr(parameter.default)
            name = f"{name}={default if len(default) < 20 and default[0] != '<' else '...'}"
        told.append(name)
    return f"`{thing.__name__}({', '.join(told)})`"


def _first(thing: Any) -> str:
    """Return the first sentence that it says of itself."""
    text = inspect.getdoc(thing) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _formats(sink: type[Any]) -> str:
    words = [f"`format: {word}`" for word, of in SINKS.items() if of is sink]
    return ", ".join(words) or "not"


def _others() -> Mapping[str, Any]:
    """Return the public names that no other table has."""
    listed = {name for registry in _LISTED for name in Registered(registry)} | {
        query.__name__ for query in QUERIES.values()
    }
    return {name: getattr(sp, name) for name in dir(sp) if name not in listed and not name.startswith("_")}


def _commands() -> Iterable[tuple[str, str]]:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    add_commands(commands)
    for choice in commands._choices_actions:  # noqa: SLF001 - argparse has no public access to the help texts
        yield f"`skypane {choice.dest}`", str(choice.help)


def main() -> None:
    """Write the tables into reference.md of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where reference.md is")
    page = parser.parse_args().folder / "reference.md"
    for mark, text in tables().items():
        replace_between(page, mark, text)


if __name__ == "__main__":
    main()
