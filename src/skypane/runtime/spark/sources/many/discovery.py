"""Discover inputs: parse the user's list, and find the inputs that exist now."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from skypane.naming import instead, nearest
from skypane.plugins import Registered
from skypane.runtime.spark.sources.many import growing_inputs, registry
from skypane.runtime.spark.sources.many.growing_inputs import FileInput
from skypane.runtime.spark.sources.many.input_kind import InputExtent, InputKind, InputSpec
from skypane.types import ConfigError

KINDS: Mapping[str, InputKind] = Registered(registry, lambda _name, module: str(module.KEY))
"""The kinds of inputs, by the key that chooses them in a mapping of the list."""


def entry(given: object, where: str) -> InputSpec:
    """Return the entry that a path, a mapping or an entry describes; raise ConfigError, naming `where`, if invalid."""
    if isinstance(given, FileInput):
        return given
    if isinstance(given, str | os.PathLike):
        return growing_inputs.of({"path": os.fspath(given)}, where)
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a path, or a mapping with {' or '.join(KINDS)}, got {given!r}")
    kinds = [key for key in KINDS if key in given]
    if not kinds:
        for name in map(str, given):
            if nearest(name, list(KINDS)):
                raise ConfigError(f"{where}: an input has no {name!r}; {instead(name, list(KINDS))}")
        raise ConfigError(f"{where} needs {' or '.join(KINDS)}, the key that names what to read")
    if len(kinds) > 1:
        raise ConfigError(f"{where} has {' and '.join(kinds)}; list each of them as an input of its own")
    return KINDS[kinds[0]].of(given, where)


def listed(given: Iterable[object]) -> tuple[InputSpec, ...]:
    """Return the entries of a list; raise ConfigError if it is empty, or if it lists a name or an input twice."""
    found = tuple(entry(one, f"inputs[{at}]") for at, one in enumerate(given))
    if not found:
        raise ConfigError("inputs is empty; list at least one file or pattern")
    seen: set[str] = set()
    for one in found:
        for claim in sorted(one.claims & seen):
            raise ConfigError(f"inputs lists {claim!r} twice; leave one out, or name them differently")
        seen |= one.claims
    return found


def discovered(
    listing: Iterable[InputSpec],
    at: Mapping[str, int] | None = None,
    marks: Mapping[str, Sequence[Any]] | None = None,
) -> dict[str, InputExtent]:
    """Return the existing inputs by name; an input that is listed by itself is not found again by a pattern.

    `at` maps names to the offsets read so far, from which a kind detects lost data; `marks` has what some inputs keep
    beside them. Raises ConfigError for two inputs with the same name.
    """
    order = sorted(listing, key=lambda one: one.is_pattern)
    found: dict[str, InputExtent] = {}
    known: set[Hashable] = set()
    for key, kind in KINDS.items():
        more = (marks or {},) if "marks" in signature(kind.look).parameters else ()
        for each in kind.look([one for one in order if one.kind == key], at or {}, *more):
            if each.input.identity in known:
                continue
            if (other := found.get(each.input.name)) is not None:
                raise ConfigError(
                    f"{each.input.identity} and {other.input.identity} are both called {each.input.name}; name one of "
                    "them differently"
                )
            known.add(each.input.identity)
            found[each.input.name] = each
    return found


def to_text(listing: Iterable[InputSpec]) -> str:
    """Return a list of inputs as the text of an option; raise ConfigError for a secret, which plans would show."""
    return json.dumps([one.plain() for one in listing])


def from_text(text: str) -> tuple[InputSpec, ...]:
    """Return the inputs of an option: a JSON list, or the path of a JSON file that may change while the query runs."""
    body, where = text, "inputs"
    if not text.lstrip().startswith("["):
        try:
            body, where = Path(text).read_text(encoding="utf-8"), text
        except OSError as error:
            raise ConfigError(f"cannot read the list of inputs {text}: {error.strerror or error}") from error
    try:
        given = json.loads(body)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where} must be a list in JSON: {error}") from error
    if not isinstance(given, list):
        raise ConfigError(f"{where} must be a list in JSON, got {type(given).__name__}")
    found = listed(given)
    if body is text:
        to_text(found)  # raises ConfigError for secrets in the option itself
    return found
