"""The text of a job file as plain data: mappings, lists and values, of an extent that a person could have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from skypane.naming import shortened
from skypane.types import ConfigError

_MOST_BYTES = 1 << 18
_MOST_VALUES = 50_000
"""Values of one file, those that an alias repeats counted each time."""
_DEEPEST = 30
"""Sections within sections."""


def text_of(path: Path, what: str = "the job file") -> str:
    """Return the text of a file; ConfigError if it cannot be read, is larger than a person writes, or is not UTF-8."""
    called = f"{what} {shortened(str(path))}"
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {called}: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{called} is larger than {_MOST_BYTES // 1024} KiB; is it another file?")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{called}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from error


def data_of(text: str, name: str) -> Any:
    """Return the one YAML document in `text`; ConfigError, which begins with `name`, if there is none."""
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_extent(node, name)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{name}{where}: not YAML: {why}") from error
    except (RecursionError, MemoryError) as error:
        raise _too_deep(name) from error
    except ConfigError:
        raise
    except ValueError as error:  # a date such as 2024-13-45, a number of five thousand digits
        raise ConfigError(f"{name}: holds a value that cannot be read: {error}") from error
    finally:
        loader.dispose()


def _check_extent(root: yaml.Node, name: str) -> None:
    """Raise ConfigError for what is too much or too deep, before aliases of aliases are followed to their end."""
    values, todo = 1, [(root, 1)]
    while todo:
        node, depth = todo.pop()
        if depth > _DEEPEST:
            raise _too_deep(name)
        if isinstance(node, yaml.ScalarNode):
            _check_letters(node, name)
            continue
        inner = [part for entry in node.value for part in (entry if isinstance(entry, tuple) else (entry,))]
        values += len(inner)
        if values > _MOST_VALUES:
            raise ConfigError(
                f"{name}: holds more than {_MOST_VALUES:,} values, repeated aliases counted; leave out some"
            )
        todo.extend((part, depth + 1) for part in inner)


def _check_letters(node: yaml.ScalarNode, name: str) -> None:
    """A NUL, which YAML lets through as an escape, ends a text for whoever passes it on to the system."""
    if "\0" in node.value:
        raise ConfigError(
            f"{name}, line {node.start_mark.line + 1}: {shortened(repr(node.value))} holds the letter NUL, which no name, "
            f"path or expression can have; leave it out"
        )


def _too_deep(name: str) -> ConfigError:
    return ConfigError(f"{name}: has more than {_DEEPEST} sections within each other; no job needs so many")
