"""The first rows of a CSV or JSON file: lines that cannot be read are left out, as a stream rejects them."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from skypane.naming import shortened
from skypane.runtime.receiving.response_text import MARKS
from skypane.types import ConfigError
from skypane.wording import counted

_READ: Final = 1 << 20
"""Bytes of a file that are read."""

_WHOLE_FILE: Final = 64 << 20
"""Bytes of a file of JSON that is not in lines, at most."""

_SEPARATORS: Final = (",", ";", "\t", "|")
"""Characters between the columns of CSV, the usual ones first."""

_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_CODE: Final = re.compile(r"\d+[eE]\d+", re.ASCII)
"""A text such as 12E5, which may be a number, but is more likely a code."""


class SampleLines(NamedTuple):
    """Rows, the lines that cannot be read as rows, as the file has them, and the options with which Spark reads the file."""

    rows: pa.Table
    others: list[str]
    options: Mapping[str, str | bool] = {}

    @property
    def remarks(self) -> list[str]:
        """A sentence about the lines that cannot be read; nothing if there are none."""
        if not self.others:
            return []
        return [f"{counted(len(self.others), 'lines of the sample')} cannot be read: {shortened(repr(self.others[0]))}"]


def csv_lines(path: Path) -> SampleLines:
    """Return the first rows of a CSV file; raise ArrowException if it is none."""
    text = _text(path)
    header = text.partition(b"\n")[0].decode()
    separator = max(_SEPARATORS, key=header.count)
    rows, others = _csv(text, separator)
    if len(others) > len(rows):
        _csv(text, separator, strict=True)  # raises: most lines do not fit the header
    texts, _ = _csv(text, separator, types=dict.fromkeys(rows.column_names, pa.string()))
    rows = rows.from_arrays(
        [_kept(column, text) for column, text in zip(rows.columns, texts.columns, strict=True)], rows.column_names
    )
    options: dict[str, str | bool] = {"header": True}
    options |= {"sep": separator} if separator != "," else {}
    options |= {"multiLine": True} if _has(texts, r"[\r\n]") else {}
    # To Spark a backslash escapes a quote; here it is written twice.
    options |= {"escape": '"'} if _has(texts, '"') else {}
    # Spark calls a column without a name so.
    names = [name.strip() or f"_c{at}" for at, name in enumerate(rows.column_names)]
    return SampleLines(rows.rename_columns(names), others, options)


def _csv(
    text: bytes, separator: str, *, strict: bool = False, types: Mapping[str, pa.DataType] | None = None
) -> tuple[pa.Table, list[str]]:
    """Return rows of CSV, and the lines that have more or fewer values than the header; only an empty field is null."""
    others = list[str]()

    def left_out(line: pyarrow.csv.InvalidRow) -> str:
        others.append(line.text)
        return "skip"

    parsing = pa.csv.ParseOptions(delimiter=separator, invalid_row_handler=None if strict else left_out)
    values = pa.csv.ConvertOptions(null_values=[""], strings_can_be_null=True, column_types=types)
    reading = pa.csv.ReadOptions(use_threads=False, block_size=max(len(text), 1))
    return pa.csv.read_csv(BytesIO(text), reading, parsing, values), others


def _has(texts: pa.Table, pattern: str) -> bool:
    return any(pc.any(pc.match_substring_regex(column, pattern)).as_py() for column in texts.columns)


def _kept(column: pa.ChunkedArray, texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as it was read, or its texts where numbers would lose something of them."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        values = pc.drop_null(texts).unique().to_pylist()
        return column if _are_numbers(values, whole=pa.types.is_integer(column.type)) else texts
    return column


def _are_numbers(texts: Sequence[str], *, whole: bool) -> bool:
    """Return whether texts are numbers of which a whole number, or a double, keeps every digit: 01067, +49 and 12E5 are not."""
    if whole:
        return all(str(int(text)) == text for text in texts)
    return all(text in {"NaN", "Infinity", "-Infinity"} or _is_double(text) for text in texts)


def _is_double(text: str) -> bool:
    if not _NUMBER.fullmatch(text) or _CODE.fullmatch(text) or not isfinite(float(text)):
        return False
    digits = re.sub(r"[eE].*|\D", "", text).lstrip("0")
    return len(digits) <= 15 or repr(float(text)).rstrip("0") == text.rstrip("0")


class _Number(str):
    """A number as JSON writes it."""

    __slots__ = ()


def json_lines(path: Path) -> SampleLines:
    """Return the first rows of a file of JSON: objects, one per line, or one value of several lines; raise ArrowException for another."""
    text = _text(path)
    lines = [line for line in text.splitlines() if line.strip()]
    read = [_object(line) for line in lines]
    objects = [one for one in read if one is not None]
    others = [line.decode() for line, one in zip(lines, read, strict=True) if one is None]
    options: dict[str, str | bool] = {}
    if len(others) > len(objects):
        objects, others, options = [*_all_objects(path)], [], {"multiLine": True}
        if not objects:
            return SampleLines(pa.json.read_json(BytesIO(text)), [])  # raises: Arrow's error shows what is wrong
    codes = {name for name in dict.fromkeys(name for one in objects for name in one) if not _is_exact(objects, name)}
    written = (json.dumps({name: _plain(value, name in codes) for name, value in one.items()}) for one in objects)
    return SampleLines(pa.json.read_json(BytesIO("\n".join(written).encode())), others, options)


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text, parse_int=_Number, parse_float=_Number)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _all_objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file that is one value of JSON: a list of them, or one of several lines."""
    with path.open("rb") as file:
        text = file.read(_WHOLE_FILE).removeprefix(codecs.BOM_UTF8)
    try:
        value = json.loads(text, parse_int=_Number, parse_float=_Number)
    except ValueError:
        return
    yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict))


def _is_exact(objects: Sequence[dict[str, Any]], name: str) -> bool:
    """Return whether numbers of a column of JSON keep every digit as whole numbers or as doubles."""
    numbers = {value for one in objects if isinstance(value := one.get(name), _Number)}
    whole = all(text.lstrip("-").isdigit() for text in numbers)
    return all(-(2**63) <= int(text) < 2**63 for text in numbers) if whole else all(map(_is_double, numbers))


def _plain(value: Any, as_text: bool) -> Any:
    if isinstance(value, _Number):
        return str(value) if as_text else json.loads(value)
    if isinstance(value, dict):
        return {name: _plain(one, False) for name, one in value.items()}  # noqa: FBT003
    return [_plain(one, False) for one in value] if isinstance(value, list) else value  # noqa: FBT003


def _text(path: Path) -> bytes:
    """Return the lines that begin in the first _READ bytes; raise ConfigError if they are not in UTF-8."""
    with path.open("rb") as file:
        text = file.read(_READ) + file.readline()
    coding = next(
        (name.upper() for mark, name in MARKS.items() if text.startswith(mark)), "UTF-16" if b"\0" in text else None
    )
    if coding is None:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise ConfigError(
                f"the sample {path} is not in UTF-8: byte 0x{text[error.start]:02X} in line {line}; if it is in Latin-1, write it "
                f"in UTF-8 first: iconv -f ISO-8859-1 -t UTF-8"
            ) from None
        return text.removeprefix(codecs.BOM_UTF8)
    raise ConfigError(f"the sample {path} is in {coding}: write it in UTF-8 first: iconv -f {coding} -t UTF-8")
