"""Tables of stays: how a stay is written, and how it is read as the answers of its windows.

    window_from    start of the first window
    window_to      start of the last window
    window_end     end of the last window
    window_count   number of windows, from the first to the last; they begin at equal distances

Each line says which windows it stands for, whatever the query, so a folder may hold stays of several queries.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from skypane.types import IntArray

AnswerForm: TypeAlias = Literal["windows", "stays"]
"""Whether the rows of each window are written, or each row with its windows."""

WINDOWS: Final[AnswerForm] = "windows"
STAYS: Final[AnswerForm] = "stays"

START: Final = "window_start"
FROM: Final = "window_from"
TO: Final = "window_to"
END: Final = "window_end"
COUNT: Final = "window_count"
STAY_COLUMNS: Final = (FROM, TO, END, COUNT)


def are_stays(schema: pa.Schema) -> bool:
    """Return whether rows of `schema` are stays."""
    return tuple(schema.names[: len(STAY_COLUMNS)]) == STAY_COLUMNS


def expanded(stays: pa.Table) -> pa.Table:
    """Return the answers of all windows: window_start, window_end, and the columns of the rows."""
    starts, ends, rows = _windows(stays)
    kind = stays.schema.field(FROM).type
    columns = [pa.array(times).view(pa.timestamp("us", kind.tz)).cast(kind) for times in (starts, ends)]
    schema = pa.schema([pa.field(START, kind), pa.field(END, kind), *rows.schema])
    return pa.Table.from_arrays([*columns, *rows.columns], schema=schema)


def one_by_one(stays: pa.Table) -> pa.Table:
    """Return a stay of one window for each window of each stay; they stand for the same answers."""
    starts, ends, rows = _windows(stays)
    return stay_table(rows, starts, starts, ends, np.ones(len(starts), np.int32), stays.schema)


def stay_table(
    rows: pa.Table, starts: IntArray, lasts: IntArray, ends: IntArray, counts: IntArray, schema: pa.Schema
) -> pa.Table:
    """Return `rows` as stays of `schema`; bounds are in microseconds."""
    kind = schema.field(FROM).type
    bounds = [pa.array(times).view(kind) for times in (starts, lasts, ends)]
    return pa.Table.from_arrays([*bounds, pa.array(counts, pa.int32()), *rows.columns], schema=schema)


def stay_fields(zone: str | None) -> list[pa.Field]:
    """Return the fields that come before those of the rows."""
    kind = pa.timestamp("us", zone)
    return [pa.field(FROM, kind), pa.field(TO, kind), pa.field(END, kind), pa.field(COUNT, pa.int32())]


def _windows(stays: pa.Table) -> tuple[IntArray, IntArray, pa.Table]:
    """Return start and end of each window of each stay, and the rows, without the columns of stays."""
    begin, last, end = (micros_of(stays.column(name)) for name in (FROM, TO, END))
    counts = stays.column(COUNT).to_numpy().astype(np.int64)
    of = np.repeat(np.arange(stays.num_rows), counts)
    place = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    slides = (last - begin) // np.maximum(counts - 1, 1)
    starts: IntArray = begin[of] + place * slides[of]
    return starts, starts + (end - last)[of], stays.drop_columns(list(STAY_COLUMNS)).take(pa.array(of))


def micros_of(column: pa.ChunkedArray) -> IntArray:
    """Return times without nulls in microseconds."""
    micros: IntArray = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_numpy()
    return micros
