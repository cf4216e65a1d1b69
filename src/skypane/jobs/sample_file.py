"""The columns of a sample file, CSV, JSON lines or parquet, as the source of a first job needs them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import ArrayType, DataType, StructType

from skypane.jobs.sample_lines import SampleLines, csv_lines, json_lines
from skypane.naming import backticked, shortened
from skypane.runtime.local_times import FINE
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.types import ConfigError
from skypane.wording import counted

_UNITS: Final = ((1e9, "timestamp_seconds"), (1e12, "timestamp_millis"), (1e15, "timestamp_micros"))
"""Least value of an integer that counts from 1970, if it is of this century, and the function of Spark that reads it."""

_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})?)?)?", re.ASCII)
"""A time as Spark's readers take it without an option."""

_INSTANT: Final = pa.timestamp("us", "UTC")

_NEARLY_ALL: Final = 0.9
"""Share of the texts of a column that must be times for the column to be one: files have bad lines."""


@dataclass(frozen=True, eq=False)
class SampleFile:
    """The first rows of a file.

    format   of Spark's reader
    pattern  the path of the file and of others beside it that have its ending
    rows     times are timestamps, also those that the file writes as text
    written  the types in the file
    options  with which Spark's reader reads it
    remarks  what of the file the rows do not have, a sentence each
    """

    format: str
    pattern: str
    rows: pa.Table
    written: pa.Schema
    options: Mapping[str, str | bool]
    remarks: tuple[str, ...] = ()

    @property
    def instants(self) -> dict[str, str]:
        """The columns that may be the event time, each with the SQL expression of its timestamp."""
        found = {field.name: self._instant(field) for field in self.rows.schema}
        first = {name: text for name, text in found.items() if text == sql_name(name)}
        return first | {name: text for name, text in found.items() if text is not None}

    def _instant(self, field: pa.Field) -> str | None:
        name = sql_name(field.name)
        if pa.types.is_timestamp(field.type):
            # The schema of a text file makes them timestamps; parquet states its own.
            is_text = self.format == "parquet" and _is_text(self.written.field(field.name).type)
            return f"try_cast({name} AS timestamp)" if is_text else name
        if pa.types.is_date(field.type):
            return f"CAST({name} AS timestamp)"
        least = pc.min(self.rows[field.name]).as_py() if pa.types.is_integer(field.type) else None
        units = (unit for begin, unit in _UNITS if least is not None and begin <= least < 4 * begin)
        return next((f"{unit}({name})" for unit in units), None)

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers that are not times."""
        times = self.instants
        return [one.name for one in self.rows.schema if _is_number(one.type) and one.name not in times]

    @property
    def schema(self) -> str | None:
        """The schema as DDL; None for a format that states it."""
        if self.format == "parquet":
            return None
        fields = spark_schema(self.rows.schema)
        return ", ".join(f"{sql_name(one.name)} {_ddl(one.dataType)}" for one in fields)

    def seconds(self, name: str) -> float | None:
        """Return the time from the earliest to the latest row by a column of timestamps; None for another column."""
        column = self.rows[name]
        if not pa.types.is_timestamp(column.type) or not len(column):
            return None
        ends = pc.min_max(column).as_py()
        return None if ends["min"] is None else float((ends["max"] - ends["min"]).total_seconds())


def sql_name(column: str) -> str:
    """Return a column's name as SQL and preferences read it, in backticks only where it needs them."""
    return column if column.isascii() and column.isidentifier() else backticked(column)


def _ddl(kind: DataType) -> str:
    """Return a type as DDL, with the names of fields as columns have them."""
    if isinstance(kind, StructType):
        return f"struct<{', '.join(f'{sql_name(one.name)}: {_ddl(one.dataType)}' for one in kind)}>"
    if isinstance(kind, ArrayType):
        return f"array<{_ddl(kind.elementType)}>"
    return kind.simpleString()


def read_sample(path: Path) -> SampleFile:
    """Return the sample at `path`, of a folder that of its first file by name.

    Raises ConfigError if the ending of the file is not known, or it cannot be read so.
    """
    path = _first_of(path) if path.is_dir() else path
    if (ending := _ending(path)) not in _READERS:
        raise ConfigError(f"a sample must end in {', '.join(_READERS)}, or be a folder of such files, got {path}")
    format_, reader = _READERS[ending]
    try:
        rows, others, options = reader(path)
    except OSError as error:
        raise ConfigError(f"cannot read the sample {path}: {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise ConfigError(f"cannot read the sample {path} as {format_}: {error}") from error
    if not rows.num_columns:
        raise ConfigError(f"the sample {path} has no columns")
    name, times = Counter(rows.column_names).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"the sample {path} has {times} columns {name!r}; name one of them differently")
    timed = _with_times(rows)
    remarks = (*SampleLines(rows, others).remarks, *_nulled(rows, timed))
    return SampleFile(format_, str(path.with_name(f"*{path.suffix}")), timed, rows.schema, options, remarks)


def _ending(path: Path) -> str:
    return path.suffix.lower()


def _first_of(folder: Path) -> Path:
    """Return the first file of a folder that may be a sample; Spark, too, reads no file whose name begins with _ or a dot."""
    try:
        files = sorted(one for one in folder.iterdir() if _ending(one) in _READERS and one.is_file())
    except OSError as error:
        raise ConfigError(f"cannot read the folder {folder}: {error.strerror or error}") from error
    shown = [one for one in files if not one.name.startswith(("_", "."))]
    if not shown:
        raise ConfigError(f"the folder {folder} has no file that ends in {', '.join(_READERS)}")
    return shown[0]


def _parquet(path: Path) -> SampleLines:
    with pq.ParquetFile(path) as file:
        return SampleLines(pa.Table.from_batches(islice(file.iter_batches(1000), 1), file.schema_arrow), [])


_READERS: Final[Mapping[str, tuple[str, Callable[[Path], SampleLines]]]] = {
    ".csv": ("csv", csv_lines),
    ".json": ("json", json_lines),
    ".jsonl": ("json", json_lines),
    ".ndjson": ("json", json_lines),
    ".parquet": ("parquet", _parquet),
}


def _with_times(rows: pa.Table) -> pa.Table:
    """Return rows whose times are timestamps in UTC; texts are times if nearly all are in ISO 8601."""
    for at, field in enumerate(rows.schema):
        column = rows[field.name]
        if pa.types.is_timestamp(field.type):
            column = column.cast(_INSTANT, safe=False)
        elif pa.types.is_null(field.type) or pa.types.is_time(field.type):  # Spark has no times of the day
            column = column.cast(pa.string())
        elif _is_text(field.type):
            column = _parsed(column)
        rows = rows.set_column(at, field.name, column)
    return rows


def _parsed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as times if nearly all of them are, others as null; else the texts as they are."""
    times = [_time(text) for text in column.to_pylist()]
    found, texts = sum(time is not None for time in times), len(column) - column.null_count
    if not found or found < _NEARLY_ALL * texts:
        return column
    return pa.chunked_array([pa.array(times, _INSTANT)])


def _time(text: str | None) -> datetime | None:
    """Return a text as a time if Spark reads it so, in UTC if it does not say; None for another text."""
    if text is None or not _TIME.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(text[:10] + re.sub(FINE, r"\1", text[10:]))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _nulled(rows: pa.Table, timed: pa.Table) -> Iterator[str]:
    """Yield a remark on each column of times that has texts, too."""
    for name in rows.column_names:
        lost = rows.filter(pc.and_(pc.is_valid(rows[name]), pc.is_null(timed[name])))[name]
        if len(lost):
            values, first = counted(len(lost), f"values of {name!r}"), shortened(repr(lost[0].as_py()))
            yield f"{values} cannot be read as a time, so the job has null there: {first}"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
