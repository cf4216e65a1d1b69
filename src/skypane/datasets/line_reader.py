"""Parsing of the lines of a file into the rows of its layout, block by block, so that files may exceed the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.datasets.text_layout import REJECTED, LineField, LineLayout, ParsedRows
from skypane.types import BoolArray, ConfigError, IntArray

#: bytes per block: some hundred thousand lines
BLOCK = 16 << 20

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TYPES = {"whole": pa.int64(), "real": pa.float64()}
_PATTERNS = {
    "whole": r"^-?\d{1,18}$",
    "real": r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[nN][aA][nN]$",
}
#: the characters of numbers and NaN; if a file has no others, Arrow parses the same numbers as the patterns
_PLAIN = b"0123456789-+.eEnNaA,; \t\r"
_MUST_BE = {"whole": "a whole number", "real": "a number"}


def read(layout: LineLayout, paths: Iterable[Path]) -> Iterator[ParsedRows]:
    """Yield the parsed rows of files, in order, in one or more parts each; raise ConfigError if one cannot be read."""
    for path in paths:
        try:
            with path.open("rb") as file:
                for first, lines in _blocks(file, whole=layout.newest_first):
                    yield parse(layout, lines, path, first)
        except OSError as error:
            raise ConfigError(f"cannot read {path} as {layout.name}: {error.strerror or error}") from error


def read_all(layout: LineLayout, paths: Iterable[Path]) -> ParsedRows:
    """Return the parsed rows of all files, in the order of the files; raise ConfigError if there is nothing to read."""
    parts = list(read(layout, paths))
    if not parts:
        raise ConfigError(f"no file to read as {layout.name}, or only empty ones")
    return ParsedRows(
        pa.concat_tables(part.table for part in parts).combine_chunks(),
        pa.concat_tables(part.rejected for part in parts).combine_chunks(),
    )


def parse(layout: LineLayout, lines: list[bytes], path: Path, first: int = 1) -> ParsedRows:
    """Return the parsed rows of `lines`, of which the first has the number `first` in its file."""
    text = pa.array([line.decode("utf-8", "replace").strip("\r") for line in lines], pa.string())
    number = np.arange(first, first + len(lines))
    filled = pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(text)), 0)
    text, number = text.filter(filled), number[filled.to_numpy(zero_copy_only=False)]
    reason = np.full(len(text), "", dtype=object)

    fields = _split(text, layout.separator)
    field_counts = pc.list_value_length(fields).to_numpy()
    need = len(layout.fields)
    _reject(reason, field_counts != need, f"is not {need} fields")
    table = _numbers(fields, layout, field_counts == need, reason, plain=not b"".join(lines).translate(None, _PLAIN))
    table, checks = layout.build(table, path)
    within = np.flatnonzero(field_counts == need)
    for why, failing in checks:
        _reject(reason, within[failing], why)

    good: BoolArray = reason == ""
    table = table.filter(pa.array(good[within]))
    rejected = _rejected(path, number[~good], reason[~good], text.filter(pa.array(~good)))
    if layout.newest_first:
        table = table.take(pa.array(np.arange(table.num_rows)[::-1]))
    return ParsedRows(table, rejected)


def _blocks(file: BinaryIO, *, whole: bool) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (number of the first line, lines), each line once and whole."""
    first, rest = 1, b""
    while block := file.read(-1 if whole else BLOCK):
        lines = (rest + block).split(b"\n")
        if first == 1:
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        rest = lines.pop()
        if lines:
            yield first, lines
        first += len(lines)
    if rest:
        yield first, [rest]


def _split(text: pa.StringArray, separator: str | None) -> pa.ListArray:
    if separator is None:
        return pc.utf8_split_whitespace(pc.utf8_trim_whitespace(text))
    return pc.split_pattern(text, separator)


def _numbers(
    fields: pa.ListArray, layout: LineLayout, whole: BoolArray, reason: np.ndarray, *, plain: bool
) -> pa.Table:
    """Return the columns of the lines that have all fields; cells that are not numbers become null, with a reason."""
    flat = fields.filter(pa.array(whole)).flatten()
    within = np.flatnonzero(whole)
    need = len(layout.fields)
    columns = {}
    for index, field in enumerate(layout.fields):
        cells = pc.utf8_trim_whitespace(flat.take(pa.array(np.arange(index, len(flat), need))))
        columns[field.name], wrong = _cast(cells, field) if plain else _matched(cells, field)
        _reject(reason, within[wrong], f"{field.name} is not {_MUST_BE[field.kind]}")
    return pa.table(columns)


def _cast(cells: pa.StringArray, field: LineField) -> tuple[pa.Array, BoolArray]:
    """Return the cells as numbers, and the mask of those that are not; a single cast if all are numbers."""
    try:
        return _finite(cells.cast(_TYPES[field.kind]))
    except pa.ArrowInvalid:
        return _matched(cells, field)


def _matched(cells: pa.StringArray, field: LineField) -> tuple[pa.Array, BoolArray]:
    """Return the same as _cast(), by matching each cell with the pattern of the field."""
    right = pc.match_substring_regex(cells, _PATTERNS[field.kind])
    numbers = pc.if_else(right, cells, pa.scalar(None, pa.string())).cast(_TYPES[field.kind])
    values, infinite = _finite(numbers)
    return values, infinite | ~right.to_numpy(zero_copy_only=False)


def _finite(values: pa.Array) -> tuple[pa.Array, BoolArray]:
    """Return the values with NaN replaced by null, and the mask of those that are infinite, that is too large."""
    if not pa.types.is_floating(values.type):
        return values, np.zeros(len(values), np.bool_)
    numbers = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return numbers, pc.is_inf(values).fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - as in layout


def _reject(reason: np.ndarray, which: BoolArray | IntArray, why: str) -> None:
    """Set the reason of the rows `which`, a mask or row numbers, to `why`, unless they have one: the first counts."""
    indices = np.flatnonzero(which) if which.dtype == bool else which
    indices = indices[reason[indices] == ""]
    reason[indices] = why


def _rejected(path: Path, number: IntArray, reason: np.ndarray, text: pa.StringArray) -> pa.Table:
    file = pa.array([str(path)] * len(number), pa.string())
    return pa.table([file, pa.array(number), pa.array(reason.tolist(), pa.string()), text], schema=REJECTED)
