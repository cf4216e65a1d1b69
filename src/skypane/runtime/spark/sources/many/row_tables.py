"""The tables that a task sends to Spark: what was read, the name of its input, and the raw text of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skypane.naming import printable
from skypane.operators.entry.raw_text import FORMAT as RAW_FORMAT
from skypane.operators.entry.raw_text import OFFSET, RAW, all_packed, packed
from skypane.runtime.row_parser import FILE, FORM, Malformed
from skypane.runtime.spark.sources.many.input_kind import Input, origin_of


@dataclass(frozen=True, slots=True)
class RawTexts:
    """The column RAW of rows that parse.

    whole  whether all have their text; else only those without a time have it, which no query takes
    time   the column of event time; None: not known
    """

    whole: bool
    time: str | None

    def of(self, rows: pa.Table, one: Input) -> pa.ChunkedArray:
        """Return the texts, and the place of each row unless the name of its input is all of it; else nulls."""
        about = rows.schema.metadata or {}
        file = about.get(FILE, b"").decode()
        place = {"raw_file": file} if file else dict(origin_of(one))
        form = {RAW_FORMAT: about[FORM].decode()} if FORM in about else {}
        if self.whole and RAW in rows.column_names:
            return pa.chunked_array([all_packed(rows.column(RAW).combine_chunks(), place | form)])
        is_named = place.get("raw_file", one.name) == one.name and "raw_topic" not in place
        texts = pa.repeat(pa.scalar(None if is_named else packed(None, place), pa.large_string()), len(rows))
        if self.time is not None and RAW in rows.column_names and rows.column(self.time).null_count:
            where = pc.is_null(rows.column(self.time)).combine_chunks()
            told = all_packed(rows.column(RAW).combine_chunks().filter(where), place | form)
            texts = pc.replace_with_mask(texts, where, told.cast(pa.large_string()))
        return pa.chunked_array([texts])


def table_of(
    found: pa.Table | list[Malformed], columns: pa.Schema, of: Input, name: str, malformed: str | None, texts: RawTexts
) -> pa.Table:
    """Return a table of all columns: the input's name is added, and malformed rows have nulls in the data columns."""
    if isinstance(found, pa.Table):
        added = {name: of.name, malformed: None}
        told: dict[str, Callable[[pa.Table], pa.ChunkedArray]] = {
            OFFSET: _offsets,
            RAW: partial(texts.of, one=of),
        }
        arrays = [
            pa.repeat(pa.scalar(added[field.name], field.type), len(found))
            if field.name in added
            else told[field.name](found).cast(field.type)
            if field.name in told
            else found.column(field.name)
            for field in columns
        ]
        return pa.Table.from_arrays(arrays, schema=columns)
    values: dict[str | None, list[Any]] = {
        name: [of.name] * len(found),
        malformed: [_report(one, of) for one in found],
        OFFSET: [one.within if one.file else one.offset for one in found],
        RAW: [_raw(one, of) for one in found],
    }
    nothing = [None] * len(found)
    return pa.Table.from_arrays(
        [pa.array(values.get(field.name, nothing), field.type) for field in columns], schema=columns
    )


def _report(one: Malformed, of: Input) -> str:
    where = f"{of.name} at {of.unit} {one.offset}: {one.error}"
    return where if one.text is None else f"{where}: {one.line}"


def _raw(one: Malformed, of: Input) -> str:
    about = {RAW_FORMAT: one.form or None, "raw_error": printable(one.error), **origin_of(of), "raw_line": one.number}
    about |= {"raw_file": one.file} if one.file else {}
    return packed(one.text, {name: value for name, value in about.items() if value is not None})


def _offsets(rows: pa.Table) -> pa.ChunkedArray:
    return rows.column(OFFSET) if OFFSET in rows.column_names else pa.chunked_array([pa.nulls(len(rows), pa.int64())])
