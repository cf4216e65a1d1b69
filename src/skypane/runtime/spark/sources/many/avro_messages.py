"""Messages of Avro: each is decoded with the schema of its writer, by its identifier in a registry."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from functools import cache, partial
from typing import Any, Final

from skypane.naming import shortened
from skypane.runtime.spark.sources.many.avro_bounds import MOST_FREE, contains_itself, free_values
from skypane.runtime.spark.sources.many.schema_registry import (
    Framed,
    Registry,
    RegistryClient,
    UnreadableMessageError,
    UnreadableSchemaError,
    cached_client,
)

_DIGITS: Final = 76
"""Digits of a decimal, at most: Arrow has none with more."""
_BYTES: Final = 32
"""Bytes of a number of so many digits."""
_EXACT: Final = Context(prec=_DIGITS)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def record_of(framed: Framed, registry: Registry) -> dict[str, Any]:
    """Return the fields of a message; raise UnreadableMessageError if it is not exactly one record."""
    return _decoder(registry, framed.schema)(framed.content)


@cache
def _decoder(registry: Registry, identifier: int) -> Callable[[bytes], dict[str, Any]]:
    """Return what decodes the messages of one writer's schema."""
    client, named = cached_client(registry), dict[str, Any]()
    writer = _parsed(client, client.schema(identifier, "AVRO"), named)
    read = _reader(writer, named)

    def decoded(content: bytes) -> dict[str, Any]:
        file = io.BytesIO(content)
        try:
            record = read(file, writer, None)
        except Exception as error:  # noqa: BLE001 - of many kinds, one for each way to be wrong
            raise UnreadableMessageError(
                f"it is not of its schema {identifier}: {shortened(str(error) or type(error).__name__)}"
            ) from None
        if left := len(content) - file.tell():
            raise UnreadableMessageError(f"{left:,} bytes follow the record of its schema {identifier}")
        if not isinstance(record, dict):
            raise UnreadableMessageError(f"its schema {identifier} is not of a record")
        return record

    return decoded


def _reader(schema: Any, named: Mapping[str, Any]) -> Callable[..., Any]:
    """Return fastavro's reader for a schema whose values are bounded; raise UnreadableSchemaError for another."""
    import fastavro._read_py  # noqa: PLC0415 - an extra
    from fastavro.read import LOGICAL_READERS  # noqa: PLC0415

    for name, epoch in (("long-timestamp-nanos", _EPOCH), ("long-local-timestamp-nanos", _EPOCH.replace(tzinfo=None))):
        LOGICAL_READERS.setdefault(name, partial(_moment, epoch))
    # fastavro's own takes time proportional to the square of a value's length, and rounds one that has too many digits.
    LOGICAL_READERS |= dict.fromkeys(("bytes-decimal", "fixed-decimal"), _decimal)
    try:
        deep = contains_itself(schema, named)
        free = free_values(schema, named)
    except RecursionError:
        raise UnreadableSchemaError("its schema has too many types within types") from None
    if math.isinf(free):
        raise UnreadableSchemaError(
            "its schema has an array whose items take no bytes: a message could declare any number"
        )
    if free > MOST_FREE:
        raise UnreadableSchemaError(
            f"its schema has {free:.3g} values in one that take no bytes, and at most {MOST_FREE} are read"
        )
    # The reader in C does not check the depth of its stack: a short message would end the process, at each attempt again.
    return fastavro._read_py.schemaless_reader if deep else fastavro.schemaless_reader  # noqa: SLF001


def _moment(epoch: datetime, nanos: int, *_schemas: Any) -> datetime:
    """Return the time `nanos` after an epoch, of which microseconds are kept."""
    return epoch + timedelta(microseconds=nanos // 1_000)


def _decimal(data: bytes, schema: Any, *_schemas: Any) -> Decimal:
    """Return a decimal, whose bytes may begin with any number of copies of its sign; raise ValueError for too many digits."""
    sign = b"\xff" if data[:1] >= b"\x80" else b"\0"
    significant, digits = data.lstrip(sign), min(schema["precision"], _DIGITS)
    number = int.from_bytes(sign + significant, "big", signed=True) if len(significant) <= _BYTES else None
    if number is None or len(str(abs(number))) > digits:
        raise ValueError(f"a decimal of {len(significant):,} bytes has more than {digits} digits")
    return Decimal(number).scaleb(-schema.get("scale", 0), _EXACT)


def _parsed(client: RegistryClient, schema: Any, named: dict[str, Any]) -> Any:
    """Return a schema for the decoder, with the schemas to which it refers."""
    from fastavro.schema import parse_schema  # noqa: PLC0415

    for reference in schema.references or []:
        _parsed(client, client.referred(reference), named)
    try:
        return parse_schema(json.loads(schema.schema_str), named_schemas=named)
    except Exception as error:  # noqa: BLE001 - of many kinds, one for each way to be wrong
        raise UnreadableSchemaError(
            f"its schema cannot be read: {shortened(str(error) or type(error).__name__)}"
        ) from None
