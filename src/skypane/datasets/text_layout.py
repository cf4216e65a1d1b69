"""Text layouts as frozen values, and the outcome of parsing: rows, and rejected lines with their reasons.

    file -> lines -> fields -> numbers -> build(): time and source first, then the readings
                        |          |         |
                        +----------+---------+--> rejected: file, line, reason, text

A line that cannot be parsed never stops a run and is never lost: it becomes a row of `ParsedRows.rejected`. Blank lines
are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skypane.types import BoolArray

#: The type of a field: "whole" becomes int64; "real" becomes float64, where NaN is a missing reading (null).
Kind = Literal["whole", "real"]

#: The first columns of the rows of every layout.
TIME, SOURCE = "time", "source"
TIMESTAMP = pa.timestamp("us", "UTC")

_YEAR_3000 = 32_503_680_000

REJECTED = pa.schema([("file", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("text", pa.string())])


@dataclass(frozen=True)
class LineField:
    """One field of a line: its name, its type, and its unit according to the description of the data set."""

    name: str
    kind: Kind = "real"
    unit: str = ""


#: (reason, mask of the rows that fail): checks beyond those of single numbers.
Checks = list[tuple[str, BoolArray]]


@dataclass(frozen=True)
class LineLayout:
    """The layout of the lines of a data set.

    build          maps the fields, one column each, and the path of the file to as many rows, and to checks of them
    separator      one character, or None for any white space
    newest_first   whether the last line of a file is its oldest; rows are then returned in reverse order
    """

    name: str
    fields: tuple[LineField, ...]
    build: Callable[[pa.Table, Path], tuple[pa.Table, Checks]]
    separator: str | None = None
    newest_first: bool = False


@dataclass(frozen=True, eq=False)
class ParsedRows:
    """Rows of a layout (time: timestamp[us, UTC], source: string, then its readings), and the rejected lines."""

    table: pa.Table
    rejected: pa.Table

    @property
    def reasons(self) -> dict[str, int]:
        """The number of rejected lines for each reason."""
        counted = self.rejected.column("reason").value_counts().to_pylist()
        return {entry["values"]: entry["counts"] for entry in counted}

    def by_time(self) -> ParsedRows:
        """Return a copy with the rows in ascending order of time; rows of equal time keep their order."""
        times = self.table.column(TIME).cast(pa.int64()).to_numpy()
        return ParsedRows(self.table.take(pa.array(np.argsort(times, kind="stable"))), self.rejected)


def in_seconds(seconds: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return microseconds from whole seconds since 1970; null for seconds that fail the check of unlikely()."""
    return pc.multiply(pc.if_else(_likely(seconds), seconds, pa.scalar(None, pa.int64())), 1_000_000)


def unlikely(name: str, seconds: pa.ChunkedArray) -> tuple[str, BoolArray]:
    """Return the check that seconds since 1970, in the field `name`, are within the years 1970 to 2999."""
    return f"{name} is not within the years 1970 to 2999", fails(_likely(seconds))


def _likely(seconds: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.and_(pc.greater_equal(seconds, 0), pc.less(seconds, _YEAR_3000))


def rows_at(micros: pa.ChunkedArray, source: pa.ChunkedArray, readings: pa.Table) -> pa.Table:
    """Return rows from microseconds since 1970 (int64, UTC), the sources, of any type, and the readings."""
    columns = [micros.cast(TIMESTAMP), source.cast(pa.string()), *readings.columns]
    return pa.table(columns, names=[TIME, SOURCE, *readings.column_names])


def fails(passed: pa.ChunkedArray) -> BoolArray:
    """Return the mask of the rows for which a comparison is false or null."""
    mask: BoolArray = ~passed.fill_null(False).to_numpy()  # noqa: FBT003 - Arrow takes the value by position only
    return mask
