"""The mark `<!-- job file -->`: all sections and fields of a job file, from its JSON Schema, which the site has as a file, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sphinx.application import Sphinx

from skypane.jobs.schema import job_schema

MARK: Final = "<!-- job file -->"
FILE: Final = "job-file.schema.json"
_TYPES: Final = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
_TAGS: Final = ("kind", "policy")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("source-read", _expand)
    app.connect("build-finished", _write_schema)
    return {"parallel_read_safe": True}


def _expand(_app: Sphinx, _page: str, source: list[str]) -> None:
    if MARK in source[0]:
        shown = [f'The schema itself: <a href="{FILE}">{FILE}</a>', "", *sections(job_schema())]
        source[0] = source[0].replace(MARK, "\n".join(shown))


def _write_schema(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        (Path(app.outdir) / FILE).write_text(json.dumps(job_schema(), indent=2), encoding="utf-8")


def sections(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the page: a section for the whole file, then one for each of its parts, where it is first used."""
    parts: dict[str, Any] = schema["$defs"]
    todo, seen = [("The whole file", "", schema)], {""}
    while todo:
        title, name, part = todo.pop(0)
        yield from (f"({_anchor(name)})=", f"## {title}", "", _plain(part["description"]), "")
        yield from ("| field | value | default | meaning |", "| --- | --- | --- | --- |")
        inner = []
        for field, node in part["properties"].items():
            required = field in part.get("required", ())
            default = "required" if required else _default(node)
            yield f"| `{field}` | {_cell(value(node, parts))} | {default} | {_cell(_plain(node['description']))} |"
            path = f"{_path(title)}.{'NAME.' if name == 'NamedQuery' else ''}{field}" if name else field
            inner += [(_title(path, parts[ref]), ref, parts[ref]) for ref in _refs(node) if ref not in seen]
            seen.update(_refs(node))
        yield ""
        todo = inner + todo


def value(node: dict[str, Any], parts: dict[str, Any]) -> str:
    """Return what may be written for a field."""
    for several, between in (("anyOf", ", or "), ("oneOf", ", ")):
        if several in node:
            found = [value(each, parts) for each in node[several] if each.get("type") != "null"]
            return between.join(dict.fromkeys(found))
    return _link(_ref(node), parts) if "$ref" in node else _plain_value(node, parts)


def _link(part: str, parts: dict[str, Any]) -> str:
    return f"[{_word(parts[part]) or 'section'}](#{_anchor(part)})"


def _plain_value(node: dict[str, Any], parts: dict[str, Any]) -> str:
    if "enum" in node or "const" in node:
        return ", ".join(f"`{each}`" for each in node.get("enum", [node.get("const")]))
    if "prefixItems" in node:
        return " and ".join(value(each, parts) for each in node["prefixItems"])
    if node["type"] == "array":
        return f"list of {value(node['items'], parts)}"
    if node["type"] == "object":
        return f"by name: {value(node['additionalProperties'], parts)}" if "additionalProperties" in node else "mapping"
    example = f", such as `{node['examples'][-1]}`" if "examples" in node else ""
    return f"{_TYPES[node['type']]}{example}"


def _default(node: dict[str, Any]) -> str:
    default = node.get("default")
    return "" if default in (None, [], {}, "") or isinstance(default, dict) else f"`{json.dumps(default)}`"


def _refs(node: Any) -> list[str]:
    """Return the parts that a field's value may be."""
    if isinstance(node, list):
        return [ref for each in node for ref in _refs(each)]
    if not isinstance(node, dict):
        return []
    return [_ref(node)] if "$ref" in node else _refs([each for name, each in node.items() if name != "discriminator"])


def _ref(node: dict[str, Any]) -> str:
    return str(node["$ref"]).rpartition("/")[2]


def _word(part: dict[str, Any]) -> str:
    """Return the word that chooses one of several kinds of a section."""
    return next((f"`{part['properties'][tag]['const']}`" for tag in _TAGS if tag in part["properties"]), "")


def _title(path: str, part: dict[str, Any]) -> str:
    return f"`{path}` {_word(part)}".rstrip()


def _path(title: str) -> str:
    return title.split("`")[1]


def _anchor(name: str) -> str:
    return f"job-{name.lower() or 'file'}"


def _plain(text: str) -> str:
    """Return a text whose characters mean nothing in Markdown, except for code."""
    return "`".join(
        part if number % 2 else part.replace("*", r"\*").replace("<", r"\<")
        for number, part in enumerate(text.split("`"))
    )


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
