"""Write rows as CSV and JSON in Spark's formats, without loss of digits or limits on times."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from skypane.types import TICKS_PER_SECOND, Micros

_CHUNK = 10_000
"""Rows that are converted to Python objects at once."""

_DAY = 86_400_000_000
_DAYS = (-719_162, 2_932_896)
"""The first day of year 1 and the last of year 9999, the limits of Python and Arrow."""


def write_csv(table: pa.Table, stream: pa.NativeFile) -> None:
    """Write rows as CSV with a header line."""
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if _is_time(field.type) and _beyond(column):
            encode = _encoder(field.type)
            texts = [None if value is None else encode(value) for value in column.cast(_plain(field.type)).to_pylist()]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    pc_csv.write_csv(table, stream)


def write_json(table: pa.Table, stream: pa.NativeFile) -> None:
    """Write rows as JSON, one line per row."""
    for rows in json_objects(table):
        stream.write("".join(f"{json_text(row)}\n" for row in rows).encode())


def json_objects(table: pa.Table) -> Iterator[list[dict[str, Any]]]:
    """Yield rows as objects that JSON can hold, many at a time."""
    encode = _encoder(pa.struct(list(table.schema)))
    plain = table.cast(pa.schema([field.with_type(_plain(field.type)) for field in table.schema]))
    for batch in plain.to_batches(max_chunksize=_CHUNK):
        yield [encode(row) for row in batch.to_pylist(maps_as_pydicts="lossy")]


def json_text(row: dict[str, Any]) -> str:
    """Return one of json_objects() as a line of JSON, without its end."""
    return json.dumps(row, ensure_ascii=False)


def day(days: int) -> str:
    """Return a date, given in days since 1970, in ISO 8601.

    >>> day(0), day(3_000_000), day(-800_000)
    ('1970-01-01', '+10183-09-21', '-0221-09-04')
    """
    text = str(np.datetime64(days, "D"))
    year, rest = text[:-6], text[-6:]
    sign = "-" if year.startswith("-") else "+" if days > _DAYS[1] else ""
    return f"{sign}{year.removeprefix('-'):0>4}{rest}"


def moment(micros: Micros) -> str:
    """Return a time, given in microseconds since 1970, in ISO 8601.

    >>> moment(-1)
    '1969-12-31T23:59:59.999999'
    """
    days, rest = divmod(micros, _DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{day(days)}T{clock}.{fraction:06}" if fraction else f"{day(days)}T{clock}"


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def _beyond(column: pa.ChunkedArray) -> bool:
    """Return whether a time lies outside of the years 1 to 9999."""
    per_day = 1 if pa.types.is_date32(column.type) else _ticks_per_day(column.type)
    low, high = pc.min_max(column.cast(_plain(column.type))).as_py().values()
    return low is not None and not _DAYS[0] * per_day <= low <= high < (_DAYS[1] + 1) * per_day


def _ticks_per_day(kind: pa.TimestampType) -> int:
    return 86_400 * TICKS_PER_SECOND[kind.unit]


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type for values in Python: times become integers, since Python's are limited to years 1 to 9999."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


Encoder = Callable[[Any], Any]


def _encoder(kind: pa.DataType) -> Encoder:
    """Return the function that converts a plain non-null value of a type to a JSON value."""
    if pa.types.is_timestamp(kind):
        return partial(_moment, kind=kind)
    if pa.types.is_date32(kind):
        return day
    if pa.types.is_duration(kind):
        return partial(_interval, kind=kind)
    return _nested(kind) if pa.types.is_nested(kind) else _scalar


def _nested(kind: pa.DataType) -> Encoder:
    if pa.types.is_struct(kind):
        return partial(_struct, fields={field.name: _or_null(_encoder(field.type)) for field in kind})
    if pa.types.is_map(kind):
        return partial(_map, name=_encoder(kind.key_type), item=_or_null(_encoder(kind.item_type)))
    item = _or_null(_encoder(kind.value_type))
    return lambda values: [item(value) for value in values]


def _or_null(encode: Encoder) -> Encoder:
    return lambda value: None if value is None else encode(value)


def _struct(row: dict[str, Any], fields: dict[str, Encoder]) -> dict[str, Any]:
    return {name: encode(row[name]) for name, encode in fields.items()}


def _map(pairs: dict[Any, Any], name: Encoder, item: Encoder) -> dict[str, Any]:
    return {str(name(key)): item(value) for key, value in pairs.items()}


def _moment(ticks: int, kind: pa.TimestampType) -> str:
    text = moment(ticks * 1_000_000 // TICKS_PER_SECOND[kind.unit])
    return text if kind.tz is None else f"{text}+00:00"  # ticks count from the epoch in UTC for every zone


def _interval(ticks: int, kind: pa.DurationType) -> str:
    micros = ticks * 1_000_000 // TICKS_PER_SECOND[kind.unit]
    days, rest = divmod(abs(micros), _DAY)
    clock = moment(rest).partition("T")[2]
    return f"INTERVAL '{'-' if micros < 0 else ''}{days} {clock}' DAY TO SECOND"


def _scalar(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, (str, int, float)) else str(value)
