"""A text layout as a frozen value, and what reading it yields: rows, and the lines that are none, each with its reason.

    file -> lines -> fields -> numbers -> build(): time and source first, then the readings
                        |          |         |
                        +----------+---------+--> rejected: file, line, reason, text

A line that cannot be read never ends a run and is never lost: it becomes a row of `Reading.rejected`. Blank lines hold
nothing and are passed over.
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

#: What a field must hold: "whole" becomes int64; "real" float64, NaN being a reading that is missing (null).
Kind = Literal["whole", "real"]

#: Columns that every reader's rows start with.
TIME, SOURCE = "time", "source"
TIMESTAMP = pa.timestamp("us", "UTC")

_YEAR_3000 = 32_503_680_000

REJECTED = pa.schema([("file", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("text", pa.string())])


@dataclass(frozen=True)
class Field:
    """One field of a line: its name, what it holds, and its unit as the data set's description gives it."""

    name: str
    kind: Kind = "real"
    unit: str = ""


#: (reason, rows that have it): a check that numbers alone do not make.
Checks = list[tuple[str, BoolArray]]


@dataclass(frozen=True)
class LineLayout:
    """How the lines of a data set are laid out.

    separator: one character, or None for any white space. build: from the fields, one column each, and the file's path,
    to the rows, of equal number, and the checks that some of them fail. newest_first: a file's last line is its oldest,
    so rows are given in reverse.
    """

    name: str
    fields: tuple[Field, ...]
    build: Callable[[pa.Table, Path], tuple[pa.Table, Checks]]
    separator: str | None = None
    newest_first: bool = False


@dataclass(frozen=True, eq=False)
class Reading:
    """Rows of a layout (time: timestamp[us, UTC], source: string, then its readings) and the lines that are none."""

    table: pa.Table
    rejected: pa.Table

    @property
    def reasons(self) -> dict[str, int]:
        """Return how many lines were rejected for each reason."""
        counted = self.rejected.column("reason").value_counts().to_pylist()
        return {entry["values"]: entry["counts"] for entry in counted}

    def by_time(self) -> Reading:
        """Return the same with its rows in ascending order of time; rows of one time keep their order."""
        times = self.table.column(TIME).cast(pa.int64()).to_numpy()
        return Reading(self.table.take(pa.array(np.argsort(times, kind="stable"))), self.rejected)


def in_seconds(seconds: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return microseconds from whole seconds since 1970; null where `unlikely` says that there is no such time."""
    return pc.multiply(pc.if_else(_likely(seconds), seconds, pa.scalar(None, pa.int64())), 1_000_000)


def unlikely(name: str, seconds: pa.ChunkedArray) -> tuple[str, BoolArray]:
    """Return the check that seconds since 1970 are of this age; the column is told by `name`."""
    return f"{name} is not within the years 1970 to 2999", fails(_likely(seconds))


def _likely(seconds: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.and_(pc.greater_equal(seconds, 0), pc.less(seconds, _YEAR_3000))


def rows_at(micros: pa.ChunkedArray, source: pa.ChunkedArray, readings: pa.Table) -> pa.Table:
    """Return rows from microseconds since 1970 (int64, UTC), whatever names the source, and the readings."""
    columns = [micros.cast(TIMESTAMP), source.cast(pa.string()), *readings.columns]
    return pa.table(columns, names=[TIME, SOURCE, *readings.column_names])


def fails(passed: pa.ChunkedArray) -> BoolArray:
    """Return the rows for which a comparison is not true; one with a missing reading is not."""
    mask: BoolArray = ~passed.fill_null(False).to_numpy()  # noqa: FBT003 - Arrow takes the value by position only
    return mask
