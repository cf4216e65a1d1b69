"""Which inputs there are: as a user lists them, and as they are found at each look."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path

from skypane.naming import instead, nearest, registered
from skypane.runtime.spark.sources.many import files, registry
from skypane.runtime.spark.sources.many.files import FileInput
from skypane.runtime.spark.sources.many.kinds import Found, Kind, Listed
from skypane.types import ConfigError

KINDS: Mapping[str, Kind] = {module.KEY: module for module in registered(registry).values()}
"""What the key of a mapping in the list stands for."""


def entry(given: object, where: str) -> Listed:
    """Return what a path, a mapping or an entry means; ConfigError, naming `where`, if it means none."""
    if isinstance(given, FileInput):
        return given
    if isinstance(given, str | os.PathLike):
        return files.of({"path": os.fspath(given)}, where)
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a path, or a mapping with {' or '.join(KINDS)}, got {given!r}")
    kinds = [key for key in KINDS if key in given]
    if not kinds:
        for name in map(str, given):
            if nearest(name, list(KINDS)):
                raise ConfigError(f"{where}: an input has no {name!r}; {instead(name, list(KINDS))}")
        raise ConfigError(f"{where} needs {' or '.join(KINDS)}, which says what to read")
    if len(kinds) > 1:
        raise ConfigError(f"{where} says {' and '.join(kinds)}; list what it reads as inputs of their own")
    return KINDS[kinds[0]].of(given, where)


def listed(given: Iterable[object]) -> tuple[Listed, ...]:
    """Return a list of inputs; ConfigError for none, and for a name or a thing that is listed twice."""
    found = tuple(entry(one, f"inputs[{at}]") for at, one in enumerate(given))
    if not found:
        raise ConfigError("inputs is empty; list at least one file or pattern")
    seen: set[str] = set()
    for one in found:
        for claim in sorted(one.claims & seen):
            raise ConfigError(f"inputs lists {claim!r} twice; leave one out, or name them differently")
        seen |= one.claims
    return found


def discovered(listing: Iterable[Listed], at: Mapping[str, int] | None = None) -> dict[str, Found]:
    """Return the inputs that are there now, by name; one that is listed itself is not a pattern's too.

    ConfigError for two inputs of one name. `at` is how far inputs were read, by which a kind tells what was lost.
    """
    order = sorted(listing, key=lambda one: one.is_pattern)
    found: dict[str, Found] = {}
    known: set[Hashable] = set()
    for key, kind in KINDS.items():
        for each in kind.look([one for one in order if one.kind == key], at or {}):
            if each.input.identity in known:
                continue
            if (other := found.get(each.input.name)) is not None:
                raise ConfigError(
                    f"{each.input.identity} and {other.input.identity} are both called {each.input.name}; name one of them "
                    "differently"
                )
            known.add(each.input.identity)
            found[each.input.name] = each
    return found


def to_text(listing: Iterable[Listed]) -> str:
    """Return a list of inputs as an option's text; ConfigError for a secret, which a plan would show."""
    return json.dumps([one.plain() for one in listing])


def from_text(text: str) -> tuple[Listed, ...]:
    """Return the inputs that an option lists, in JSON, or in a file of JSON that may change while the query runs."""
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
        to_text(found)  # refuses what an option may not show
    return found
