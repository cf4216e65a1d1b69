"""Messages of Avro: each is decoded with the schema of its writer, by its identifier in a registry."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache
from typing import Any

from skypane.naming import shortened
from skypane.runtime.spark.sources.many.schema_registry import (
    Framed,
    Registry,
    RegistryClient,
    UnreadableMessageError,
    UnreadableSchemaError,
    cached_client,
)


def record_of(framed: Framed, registry: Registry) -> dict[str, Any]:
    """Return the fields of a message; raise UnreadableMessageError if it is not exactly one record."""
    return _decoder(registry, framed.schema)(framed.content)


@cache
def _decoder(registry: Registry, identifier: int) -> Callable[[bytes], dict[str, Any]]:
    """Return what decodes the messages of one writer's schema."""
    from fastavro import schemaless_reader  # noqa: PLC0415 - an extra

    client = cached_client(registry)
    writer = _parsed(client, client.schema(identifier, "AVRO"), {})

    def decoded(content: bytes) -> dict[str, Any]:
        file = io.BytesIO(content)
        try:
            record = schemaless_reader(file, writer, None)
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


def _parsed(client: RegistryClient, schema: Any, named: dict[str, Any]) -> Any:
    """Return a schema for the decoder, with the schemas to which it refers."""
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema  # noqa: PLC0415

    for reference in schema.references or []:
        _parsed(client, client.referred(reference), named)
    try:
        return parse_schema(json.loads(schema.schema_str), named_schemas=named)
    except (ValueError, SchemaParseException, UnknownType) as error:
        raise UnreadableSchemaError(f"its schema cannot be read: {shortened(str(error))}") from None
