"""Rows of messages that are records (Avro, Protobuf): fields become columns by name; what does not fit is malformed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import pyarrow as pa

from skypane.naming import shortened
from skypane.operators.entry.raw_text import OFFSET, RAW
from skypane.runtime.columns_to_read import wants_places
from skypane.runtime.row_parser import Malformed, sentence
from skypane.runtime.spark.sources.many import avro_messages, protobuf_messages
from skypane.runtime.spark.sources.many.schema_registry import (
    Framed,
    Registry,
    UnreadableMessageError,
    UnreadableSchemaError,
)

FORMATS = ("avro", "protobuf")

Converter: TypeAlias = Callable[[Any], Any]

_SINGLE: Final = Struct("f")


class _Record(NamedTuple):
    offset: int
    message: bytes
    fields: dict[str, Any]


def tables(
    form: str, columns: pa.Schema, registry: Registry, values: Sequence[bytes], offsets: Sequence[int]
) -> Iterator[pa.Table | Malformed]:
    """Yield tables of the messages, in order; malformed messages are yielded between or before the tables.

    A column that the schema of a message's writer lacks is null, and fields that are not columns are left out. Raises
    ConfigError and TimeoutError if the registry refuses or does not answer.
    """
    records, unreadable = [], dict[int, str]()
    for value, offset in zip(values, offsets, strict=True):
        try:
            records.append(_Record(offset, value, _fields(form, columns, registry, Framed.of(value), unreadable)))
        except UnreadableMessageError as error:
            yield Malformed(offset, value, str(error))
    if records:
        yield from _rows(columns, records, {one.name: _converter(one.type) for one in columns})


def _fields(
    form: str, columns: pa.Schema, registry: Registry, framed: Framed, unreadable: dict[int, str]
) -> dict[str, Any]:
    """Return the fields of a message; `unreadable` keeps the errors of schemas, which are requested once."""
    if framed.schema in unreadable:
        raise UnreadableMessageError(unreadable[framed.schema])
    try:
        if form == "avro":
            return avro_messages.record_of(framed, registry)
        return protobuf_messages.record_of(framed, registry, columns)
    except UnreadableSchemaError as error:
        unreadable[framed.schema] = str(error)
        raise


def _rows(
    columns: pa.Schema, records: Sequence[_Record], converters: dict[str, Converter | None]
) -> Iterator[pa.Table | Malformed]:
    """Yield records as columns; where that fails, records are halved until the malformed ones are alone."""
    try:
        table = pa.Table.from_arrays([_column(one, records, converters[one.name]) for one in columns], schema=columns)
        if wants_places(columns):
            table = table.append_column(OFFSET, pa.array([record.offset for record in records], pa.int64()))
            table = table.append_column(RAW, pa.array([record.message for record in records], pa.large_binary()))
        yield table
    except _MisfitError as error:
        if len(records) == 1:
            yield Malformed(records[0].offset, records[0].message, f"{error}, in {shortened(str(records[0].fields))}")
            return
        middle = len(records) // 2
        yield from _rows(columns, records[:middle], converters)
        yield from _rows(columns, records[middle:], converters)


class _MisfitError(Exception):
    """Why values do not fit a column."""


def _column(one: pa.Field, records: Sequence[_Record], converter: Converter | None) -> pa.Array:
    values = [record.fields.get(one.name) for record in records]
    try:
        if converter is not None:
            values = [None if value is None else converter(value) for value in values]
        return pa.array(values, one.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _MisfitError(f"column {one.name}, {one.type}: {sentence(error)}") from None


def _converter(kind: pa.DataType) -> Converter | None:
    """Return what makes a decoded value one that Arrow takes for the type; None if that takes them all."""
    for is_kind, converter in _SIMPLE:
        if is_kind(kind):
            return converter
    if pa.types.is_list(kind):
        return _each(_converter(kind.value_type))
    if pa.types.is_map(kind):
        return _items(_converter(kind.key_type), _converter(kind.item_type))
    if pa.types.is_struct(kind):
        return _struct({kind.field(at).name: _converter(kind.field(at).type) for at in range(kind.num_fields)})
    return None


def _instant(value: Any) -> Any:
    if _time(value).tzinfo is None:
        raise ValueError(f"{value} is a time without a zone; its field needs a logical type that states an instant")
    return value


def _local_time(value: Any) -> Any:
    if _time(value).tzinfo is not None:
        raise ValueError(f"{value} is an instant; a column of it is a timestamp")
    return value


def _time(value: Any) -> datetime:
    if isinstance(value, int | float | Decimal):
        raise ValueError(f"{value} is a number; its field needs a logical type that states the unit")  # noqa: TRY004
    if not isinstance(value, datetime):
        raise TypeError(f"{_shown(value)} is not a time")
    return value


def _duration(value: Any) -> Any:
    if not isinstance(value, timedelta):
        raise TypeError(f"{_shown(value)} is not an interval")
    return value


def _date(value: Any) -> Any:
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError(f"{_shown(value)} is not a date")
    return value


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _whole(value: Any) -> Any:
    """Return a whole number: Arrow would cut off what is behind the point."""
    if isinstance(value, float | Decimal) and value != int(value):
        raise ValueError(f"{value} is not a whole number")
    return int(value) if isinstance(value, float | Decimal) else value


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError(f"{value} is not a number")
    return float(value) if isinstance(value, Decimal) else value


def _single(value: Any) -> Any:
    """Return a number of 32 bits; Arrow would round one of 64, or make it infinite."""
    if isinstance(value, float) and not math.isnan(value) and _SINGLE.unpack(_SINGLE.pack(value))[0] != value:
        raise ValueError(f"{value} is not a number of 32 bits")
    return _number(value)


_SIMPLE: Final[tuple[tuple[Callable[[pa.DataType], bool], Converter], ...]] = (
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, _instant), (pa.types.is_timestamp, _local_time),
    (pa.types.is_duration, _duration), (pa.types.is_date, _date), (pa.types.is_string, _text), (pa.types.is_integer, _whole),
    (pa.types.is_float32, _single), (pa.types.is_floating, _number),
)  # fmt: skip


def _shown(value: Any) -> str:
    return shortened(repr(value))


def _converted(value: Any, converter: Converter | None) -> Any:
    return value if value is None or converter is None else converter(value)


def _each(converter: Converter | None) -> Converter:
    def values_of(value: Any) -> list[Any]:
        if not isinstance(value, list | tuple):  # Arrow would take the letters of a text, and the numbers of bytes
            raise TypeError(f"{_shown(value)} is not a list")
        return [_converted(one, converter) for one in value]

    return values_of


def _items(of_key: Converter | None, of_value: Converter | None) -> Converter:
    return lambda value: [(_converted(key, of_key), _converted(one, of_value)) for key, one in _named(value).items()]


def _struct(converters: dict[str, Converter | None]) -> Converter:
    def fields_of(value: Any) -> dict[str, Any]:
        fields = _named(value)
        return {name: _converted(fields.get(name), converter) for name, converter in converters.items()}

    return fields_of


def _named(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{_shown(value)} is neither a record nor a map")
    return value
