"""The first rows of a CSV or JSON lines file: lines that cannot be read are left out, as a stream rejects them."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from skypane.naming import shortened
from skypane.wording import counted

_READ: Final = 1 << 20
"""Bytes of a file that are read."""


class SampleLines(NamedTuple):
    """Rows, and the lines that cannot be read as rows, as the file has them."""

    rows: pa.Table
    others: list[str]

    @property
    def remarks(self) -> list[str]:
        """A sentence about the lines that cannot be read; nothing if there are none."""
        if not self.others:
            return []
        return [f"{counted(len(self.others), 'lines of the sample')} cannot be read: {shortened(repr(self.others[0]))}"]


def csv_lines(path: Path) -> SampleLines:
    """Return the first rows of a CSV file; raise ArrowException if it is none."""
    text, others = _first_lines(path), list[str]()

    def left_out(line: pyarrow.csv.InvalidRow) -> str:
        others.append(line.text)
        return "skip"

    in_order = pa.csv.ReadOptions(use_threads=False)
    lenient = pa.csv.ParseOptions(invalid_row_handler=left_out)
    rows = pa.csv.read_csv(BytesIO(text), read_options=in_order, parse_options=lenient)
    if len(others) > len(rows):
        rows = pa.csv.read_csv(BytesIO(text))  # raises: most lines do not fit the header
    # Spark calls a column without a name so.
    return SampleLines(rows.rename_columns([name or f"_c{at}" for at, name in enumerate(rows.column_names)]), others)


def json_lines(path: Path) -> SampleLines:
    """Return the first rows of a file of JSON lines; raise ArrowException if it is none."""
    lines = [line for line in _first_lines(path).splitlines() if line.strip()]
    others = [line for line in lines if not _is_object(line)]
    if 2 * len(others) > len(lines):
        others = []  # Arrow's error shows what is wrong
    known = set(others)
    rows = pa.json.read_json(BytesIO(b"\n".join(line for line in lines if line not in known)))
    return SampleLines(rows, [line.decode(errors="replace") for line in others])


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _first_lines(path: Path) -> bytes:
    """Return the lines that begin in the first _READ bytes."""
    with path.open("rb") as file:
        return file.read(_READ) + file.readline()
