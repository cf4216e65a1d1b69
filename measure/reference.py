"""The tables of docs/reference.md and docs/monitoring.md, from the registries: `python -m measure.reference docs`."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Collection, Iterable
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
from skypane.monitoring.measures import EACH, RUNNING, STREAM
from skypane.operators.aggregates import registry as functions
from skypane.plugins import Registered
from skypane.progress import registry as progress
from skypane.runtime.spark.sinks import registry as sinks
from skypane.runtime.spark.sources.many.discovery import KINDS
from skypane.runtime.spark.sources.source_names import SOURCES

_SHARED: Final = frozenset(item.name for item in fields(Elasticity))
"""Options that all elasticity policies take."""


def groups() -> dict[str, dict[str, Any]]:
    """Return the public names of each group, with what they name."""
    found: dict[str, dict[str, Any]] = {
        "queries": {query.__name__: query for query in QUERIES.values()},
        "functions": dict(Registered(functions)),
        "policies": dict(Registered(progress)),
        "elasticity": dict(Registered(elasticity)),
        "sinks": dict(Registered(sinks)),
    }
    listed = {name for group in found.values() for name in group}
    others = {name: getattr(sp, name) for name in dir(sp) if name not in listed and not name.startswith("_")}
    kinds = {name: _kind(value) for name, value in others.items()}
    return found | {kind: {name: others[name] for name in others if kinds[name] == kind} for kind in _KINDS}


_KINDS: Final = ("entry", "preferences", "errors", "classes")


def _kind(value: Any) -> str:
    if inspect.isclass(value):
        return "errors" if issubclass(value, sp.SkypaneError) else "classes"
    return "preferences" if value.__module__.startswith("skypane.preference") else "entry"


def tables() -> dict[str, str]:
    """Return each table by its mark."""
    named = groups()
    return {
        "queries": _table(("query", "in job files", "answers"), (
            (_call(query), f"`kind: {word}`", _first(query)) for word, query in QUERIES.items())),
        "functions": _table(("function", "value"), (
            (_call(function), _first(function)) for function in named["functions"].values())),
        "policies": _table(("policy", "in job files", "what it does"), (
            (_call(policy), f"`policy: {name.lower()}`", _first(policy)) for name, policy in named["policies"].items())),
        "elasticity": _table(("policy", "in job files", "what it does"), (
            (_call(policy, _SHARED), f"`policy: {name.lower()}`", _first(policy)) for name, policy in named["elasticity"].items())),
        "splitting": _table(("name", "what it does"), (
            (f"`{name}`", _first(type(policy))) for name, policy in POLICIES.items())),
        "sinks": _table(("sink", "in job files", "what it does"), (
            (_call(sink), _formats(sink), _first(sink)) for sink in named["sinks"].values())),
        "sources": _table(("name in job files",), ((f"`{name}`",) for name in SOURCES)),
        "inputs": _table(("key", "what such an input is"), (
            (f"`{key}`", _first(kind)) for key, kind in KINDS.items())),
        **{kind: _table(("name", head), (
            (f"`{name}`", _first(value)) for name, value in named[kind].items())) for kind, head in zip(
                _KINDS, ("what it does", "what it does", "raised for", "what it is"), strict=True)},
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


def _commands() -> Iterable[tuple[str, str]]:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    add_commands(commands)
    for choice in commands._choices_actions:  # noqa: SLF001 - argparse has no public access to the help texts
        yield f"`skypane {choice.dest}`", str(choice.help)


def measures() -> str:
    """Return the table of what is exposed to Prometheus."""
    return _table(("metric", "kind", "unit", "labels", "meaning"), (
        (f"`{one.name}`", one.kind, one.unit, ", ".join(f"`{label}`" for label in (*common, *one.labels)), one.meaning)
        for one, common in ((RUNNING, (STREAM,)), *EACH)))  # fmt: skip


def main() -> None:
    """Write the tables into reference.md and monitoring.md of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where both pages are")
    folder = parser.parse_args().folder
    for mark, text in tables().items():
        replace_between(folder / "reference.md", mark, text)
    replace_between(folder / "monitoring.md", "measures", measures())


if __name__ == "__main__":
    main()
