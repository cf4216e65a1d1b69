"""The raw text of rows, and where it came from, on the way from a source to the late sink.

Sources send two columns: the offset of each row, a number that costs next to nothing, and a text, which is null for most
rows that parse. The late sink gets a column for each part instead; no query and no answer has any of them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skypane.addresses import without_secrets

OFFSET: Final = "_skypane_offset"
"""Name of the column with the offset of a row in its input: a byte of the text, an offset of Kafka, a row of parquet."""
RAW: Final = "_skypane_raw"
"""Name of the column with the raw text of a row behind a mark and one line of JSON; a text without mark is all text."""
TEXT, ENCODING, FORMAT, ERROR = "raw_text", "raw_encoding", "raw_format", "raw_error"

KEPT: Final = pa.schema([
    (TEXT, pa.string()), (ENCODING, pa.string()), (FORMAT, pa.string()), (ERROR, pa.string()),
    ("raw_topic", pa.string()), ("raw_partition", pa.int32()), ("raw_offset", pa.int64()),
    ("raw_file", pa.string()), ("raw_line", pa.int64()),
])  # fmt: skip
"""The columns of a rejected row.

raw_text      the line or message; null if the row has parsed, and texts of such rows are not sent
raw_encoding  "utf-8", or "base64" of bytes that are not UTF-8, or have a NUL, which not all sinks can write
raw_format    how a row is parsed from it: "json", or "csv" and the names of its columns; null if it cannot be
raw_error     why it does not parse
"""

_MARK: Final = "\x1e"
_OFFSET: Final = "raw_offset"


def is_sent(schema: pa.Schema) -> bool:
    """Return whether rows of `schema` come with their raw text."""
    kind = schema.field(RAW).type if RAW in schema.names else pa.null()
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def sent(schema: pa.Schema) -> tuple[str, ...]:
    """Return the names of the columns of `schema` that only late rows keep."""
    return tuple(name for name in (OFFSET, RAW) if name in schema.names) if is_sent(schema) else ()


def own_columns(schema: pa.Schema) -> pa.Schema:
    """Return a schema without these columns."""
    hidden = sent(schema)
    return pa.schema([field for field in schema if field.name not in hidden]) if hidden else schema


def own(rows: pa.Table) -> pa.Table:
    """Return rows without these columns."""
    hidden = sent(rows.schema)
    return rows.drop_columns(list(hidden)) if hidden else rows


def packed(text: bytes | None, about: dict[str, Any]) -> str:
    """Return what column RAW says of a row: its text, None if it is not known, and parts of KEPT by their names."""
    if text is None:
        return f"{_MARK}{_line(about)}"
    told = text_of(text)
    return f"{_MARK}{_line({**about, ENCODING: told[1]})}\n{told[0]}"


def head_of(about: str) -> str:
    """Return what is before a text: a mark, and a line of JSON."""
    return f"{_MARK}{about}"


def all_packed(texts: pa.Array, about: dict[str, Any]) -> pa.Array:
    """Return packed() of the lines of many rows, without their line ends."""
    try:
        lines = pc.replace_substring_regex(texts.cast(pa.large_string()), r"\r?\n\z", "")
        if not pc.any(pc.match_substring(lines, "\0")).as_py():
            head = f"{_MARK}{_line({**about, ENCODING: 'utf-8'})}\n"
            return pc.binary_join_element_wise(
                pa.scalar(head, pa.large_string()), lines, pa.scalar("", pa.large_string())
            )
    except pa.ArrowInvalid:
        pass  # some are not UTF-8
    lines = [one.removesuffix(b"\n").removesuffix(b"\r") for one in texts.to_pylist()]
    return pa.array([packed(one, about) for one in lines], pa.large_string())


def text_of(raw: bytes) -> tuple[str, str]:
    """Return bytes as a text, and its encoding."""
    try:
        if b"\0" not in raw:
            return raw.decode(), "utf-8"
    except UnicodeDecodeError:
        pass
    return b64encode(raw).decode(), "base64"


def unpacked(rows: pa.Table) -> pa.Table:
    """Return rows with the columns of KEPT in place of those that were sent, if these are there."""
    if not is_sent(rows.schema):
        return rows
    parts = [_parts(one) for one in rows.column(RAW).to_pylist()]
    columns = {name: pa.array([part.get(name) for part in parts], KEPT.field(name).type) for name in KEPT.names}
    if OFFSET in rows.schema.names:
        columns[_OFFSET] = pc.coalesce(rows.column(OFFSET).combine_chunks().cast(pa.int64()), columns[_OFFSET])
    rows = own(rows)
    return pa.Table.from_arrays([*rows.columns, *columns.values()], schema=pa.schema([*rows.schema, *KEPT]))


def repacked(rows: pa.Table) -> pa.Table:
    """Return rows with columns of KEPT as they are sent."""
    names = [name for name in KEPT.names if name in rows.schema.names and name not in (TEXT, _OFFSET)]
    texts = []
    for row in rows.select([*names, TEXT]).to_pylist():
        text = row.pop(TEXT)
        about = _line({name: value for name, value in row.items() if value is not None})
        texts.append(_MARK + about if text is None else f"{_MARK}{about}\n{text}")
    offsets = rows.column(_OFFSET)
    rows = rows.select([name for name in rows.schema.names if name not in KEPT.names])
    return rows.append_column(OFFSET, offsets).append_column(RAW, pa.array(texts, pa.string()))


def _line(about: dict[str, Any]) -> str:
    return json.dumps(about, ensure_ascii=False)


def _parts(value: str | None) -> dict[str, Any]:
    if value is None:
        return {}
    if not value.startswith(_MARK):
        return {TEXT: value, ENCODING: "utf-8"}
    line, end, text = value[1:].partition("\n")
    about = _about(line)
    if about is None:
        return {TEXT: value, ENCODING: "utf-8"}  # a user's text, which begins as ours do
    return dict(_shown(about)) | ({TEXT: text} if end else {})


def _about(line: str) -> dict[str, Any] | None:
    """Return the parts of KEPT in a line of JSON; None if it has other contents."""
    try:
        about = json.loads(line)
        if isinstance(about, dict) and about.keys() <= {*KEPT.names}:
            for name, part in about.items():
                pa.scalar(part, KEPT.field(name).type)
            return about
    except (ValueError, TypeError, OverflowError, pa.ArrowException, RecursionError):
        pass
    return None


def _shown(about: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield parts without the secrets of addresses."""
    for name, value in about.items():
        yield name, without_secrets(value) if name in (ERROR, "raw_file", "raw_topic") else value
