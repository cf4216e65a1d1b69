"""Which inputs there are: as a user lists them, and as patterns find them at each look."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from skypane.control.admission import MetaData
from skypane.naming import instead
from skypane.places import Place
from skypane.types import ConfigError, Length

FORMATS = ("csv", "json")


@dataclass(frozen=True, slots=True)
class FileInput:
    """A file that grows by whole lines, or a pattern (*, ?, [..], **) for many of them.

    path     it may not be there yet
    name     what its rows are called by; of a pattern's files, each by its path
    format   "csv" or "json" (an object a line); None: as the file's name ends
    header   csv: whether its first line names the columns; without, they are those of the schema, in order
    meta     what is known of its rate beforehand
    """

    path: str
    name: str = ""
    format: str | None = None
    header: bool = False
    meta: MetaData = field(default_factory=MetaData)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Place.of(self.path, "path of an input").of_this_machine("an input reads"))
        if self.is_pattern and self.name:
            raise ConfigError(f"a pattern finds many inputs, each called by its path; leave out name={self.name!r}")
        if not self.is_pattern and not self.name:
            object.__setattr__(self, "name", self.path)
        if self.format is None:
            ending = Path(self.path).suffix.lstrip(".").lower()
            object.__setattr__(
                self, "format", {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}.get(ending)
            )
        if self.format not in FORMATS:
            raise ConfigError(f"cannot tell from its name how {self.path} is written; need format csv or json")

    @property
    def is_pattern(self) -> bool:
        return glob.has_magic(self.path)

    def found(self) -> Iterable[FileInput]:
        """Yield the inputs that there are now: itself, or what the pattern finds."""
        if not self.is_pattern:
            yield self
            return
        for path in sorted(glob.iglob(self.path, recursive=True)):  # noqa: PTH207 - patterns are texts from the root
            if os.path.isfile(path):  # noqa: PTH113
                yield FileInput(path, path, self.format, self.header, self.meta)

    @classmethod
    def of(cls, given: object, where: str) -> FileInput:
        """Return the input that a text, a mapping or an input means; ConfigError, naming `where`, if it means none."""
        if isinstance(given, FileInput):
            return given
        if isinstance(given, str | os.PathLike):
            return cls(os.fspath(given))
        if not isinstance(given, Mapping):
            raise ConfigError(f"{where} must be a path, or path: ... with what else is known of it, got {given!r}")
        known = [item.name for item in fields(cls)]
        for name in given:
            if name not in known:
                raise ConfigError(f"{where}: an input has no {name!r}; {instead(str(name), known)}")
        if "path" not in given:
            raise ConfigError(f"{where} needs path, the file or pattern to read")
        values: dict[str, Any] = dict(given)
        if not isinstance(values.get("meta"), MetaData | None):
            values["meta"] = MetaData.of(values["meta"], f"{where}.meta")
        return cls(**values)


def listed(given: Iterable[object]) -> tuple[FileInput, ...]:
    """Return a list of inputs; ConfigError for none, and for a name or a path that is listed twice."""
    found = tuple(FileInput.of(one, f"inputs[{at}]") for at, one in enumerate(given))
    if not found:
        raise ConfigError("inputs is empty; list at least one file or pattern")
    seen: dict[str, str] = {}
    for one in found:
        for what in {one.name, one.path} - {""}:
            if what in seen:
                raise ConfigError(f"inputs lists {what!r} twice; leave one out, or name them differently")
            seen[what] = what
    return found


def discovered(listing: Iterable[FileInput]) -> dict[str, FileInput]:
    """Return the inputs that there are now, by name; one that is listed itself is not a pattern's too."""
    found: dict[str, FileInput] = {}
    paths: set[str] = set()
    for one in sorted(listing, key=lambda one: one.is_pattern):
        for each in one.found():
            if each.path not in paths:
                paths.add(each.path)
                found[each.name] = each
    return found


def to_text(listing: Iterable[FileInput]) -> str:
    """Return a list of inputs as an option's text."""
    return json.dumps([_plain(one) for one in listing])


def _plain(one: FileInput) -> dict[str, Any]:
    """Return what is given of an input; lengths of time in the one unit that loses nothing."""
    said = {item.name: getattr(one.meta, item.name) for item in fields(MetaData)}
    meta = {name: f"{value:d} us" if isinstance(value, Length) else value for name, value in said.items()
            if value is not None}  # fmt: skip
    return {"path": one.path, "name": one.name, "format": one.format, "header": one.header, "meta": meta}


def from_text(text: str) -> tuple[FileInput, ...]:
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
    return listed(given)
