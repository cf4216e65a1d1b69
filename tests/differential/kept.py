"""Cases that once failed, kept as they were when shrunk: one line of JSON each, in kept.jsonl, tried before all others."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from tests.differential import case as of
from tests.differential.case import Case

FILE: Final = Path(__file__).with_name("kept.jsonl")


class Kept(NamedTuple):
    """A case, and what was wrong."""

    why: str
    case: Case


def kept(file: Path = FILE) -> Iterator[Kept]:
    """Yield the cases of the file, oldest first."""
    for line in file.read_text().splitlines() if file.exists() else []:
        content = json.loads(line)
        yield Kept(content["why"], _read(content["case"]))


def keep(case: Case, why: str, file: Path = FILE) -> None:
    """Add a case to the file."""
    with file.open("a") as lines:
        lines.write(json.dumps({"why": why, "case": _written(case)}) + "\n")


def _written(value: Any) -> Any:
    """Return a JSON value of plain values, tables and arrays."""
    if isinstance(value, pa.Table):
        return {"rows": _packed(value)}
    if isinstance(value, np.ndarray):
        return {"numbers": value.tolist()}
    if is_dataclass(value):
        return {"is": type(value).__name__, **{one.name: _written(getattr(value, one.name)) for one in fields(value)}}
    return [_written(one) for one in value] if isinstance(value, tuple) else value


def _read(content: Any) -> Any:
    """Return the value of which _written() made this."""
    match content:
        case {"is": name}:
            return getattr(of, name)(**{key: _read(one) for key, one in content.items() if key != "is"})
        case {"rows": packed}:
            return pa.ipc.open_stream(zlib.decompress(base64.b64decode(packed))).read_all()
        case {"numbers": numbers}:
            return np.array(numbers, np.int64)
        case list():
            return tuple(_read(one) for one in content)
    return content


def _packed(rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return base64.b64encode(zlib.compress(sink.getvalue().to_pybytes(), 9)).decode()
