"""Read the text of a job file into mappings, lists and values, within limits of size and depth.

Values without quotes are those of YAML 1.2, true, 12, 1.5, null, and all else is the text that stands there: by version 1.1, which
PyYAML reads, `no` were false, `1:30` ninety, `010` eight, and 2026-01-01 no text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

from skypane.naming import printable, shortened
from skypane.types import ConfigError

_MOST_BYTES = 1 << 18
_MOST_VALUES = 50_000
"""Maximum number of values in a file; values repeated by aliases count each time."""
_DEEPEST = 30
"""Maximum depth of nested sections."""


class _Loader(yaml.SafeLoader):
    """Reads the plain values of YAML 1.2."""


_TAG: Final = "tag:yaml.org,2002:"
_Loader.yaml_implicit_resolvers = {}
for _kind, _pattern, _begins in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(rf"(?:{_pattern})\Z"), list(_begins))


def text_of(path: Path, what: str = "the job file") -> str:
    """Return the text of a file; raise ConfigError if it is unreadable, larger than _MOST_BYTES, or not UTF-8."""
    called = f"{what} {shortened(str(path))}"
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {called}: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{called} is larger than {_MOST_BYTES // 1024} KiB; check that it is the right file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{called}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from error


def data_of(text: str, name: str) -> Any:
    """Return the single YAML document in `text`; raise ConfigError, which begins with `name`, if it cannot be read."""
    try:
        return _document(_Loader(text), name)
    except yaml.reader.ReaderError as error:
        where = f"{name}, line {text.count(chr(10), 0, error.position) + 1}"
        raise ConfigError(f"{where}: not YAML: it has the character U+{error.character:04X}; remove it") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{name}{where}: not YAML: {printable(why)}") from error
    except (RecursionError, MemoryError) as error:
        raise _too_deep(name) from error
    except ConfigError:
        raise
    except ValueError as error:  # such as the date 2024-13-45 or a number of 5,000 digits
        raise ConfigError(f"{name}: contains a value that cannot be read: {error}") from error


def _document(loader: _Loader, name: str) -> Any:
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_extent(node, name)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _check_extent(root: yaml.Node, name: str) -> None:
    """Raise ConfigError for too many values or levels, before nested aliases are expanded."""
    values, todo = 1, [(root, 1)]
    while todo:
        node, depth = todo.pop()
        if depth > _DEEPEST:
            raise _too_deep(name)
        if isinstance(node, yaml.ScalarNode):
            _check_characters(node, name)
            continue
        if isinstance(node, yaml.MappingNode):
            _check_keys(node, name)
        inner = [part for entry in node.value for part in (entry if isinstance(entry, tuple) else (entry,))]
        values += len(inner)
        if values > _MOST_VALUES:
            raise ConfigError(
                f"{name}: contains more than {_MOST_VALUES:,} values, counting repeated aliases; remove some"
            )
        todo.extend((part, depth + 1) for part in inner)


def _check_keys(node: yaml.MappingNode, name: str) -> None:
    """Raise ConfigError for a key that is there twice: YAML forbids it, and PyYAML takes the last one."""
    first: dict[tuple[str, str], yaml.ScalarNode] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            before = first.setdefault((key.tag, key.value), key)
            if before is not key:
                raise ConfigError(
                    f"{name}, line {key.start_mark.line + 1}: {shortened(repr(key.value))} is there twice, first in line "
                    f"{before.start_mark.line + 1}; remove one of them, or give it another name"
                )


def _check_characters(node: yaml.ScalarNode, name: str) -> None:
    """Raise ConfigError for a NUL, which YAML allows as an escape, but which ends a string in system calls."""
    if "\0" in node.value:
        raise ConfigError(
            f"{name}, line {node.start_mark.line + 1}: {shortened(repr(node.value))} contains a NUL character, which "
            f"no name, path or expression may have; remove it"
        )


def _too_deep(name: str) -> ConfigError:
    return ConfigError(f"{name}: has more than {_DEEPEST} nested sections; a job needs fewer")
