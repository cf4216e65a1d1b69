"""Messages of Protobuf: each is decoded with the schema of its writer, by its identifier in a registry.

The registry returns the schema as descriptors, from which classes of messages are made: no generated code is needed. A
frame also has the path of the message's type in its file, because a file may declare several.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from functools import cache
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

from skypane.naming import shortened
from skypane.runtime.spark.sources.many.schema_registry import (
    Framed,
    Registry,
    RegistryClient,
    UnreadableMessageError,
    UnreadableSchemaError,
    cached_client,
)

_SERIALIZED: Final = "serialized"
"""The format of the registry for descriptors, in base64."""
_LONGEST_PATH: Final = 100
"""Types within types, at most."""
_VARINT: Final = 10
"""Bytes of a number, at most."""

_BUILT_IN: Final = re.compile(r"(?:google/protobuf|google/type|confluent|confluent/types?)/[a-z_]+\.proto")
"""Files that registries need not have."""

_OWN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "google.protobuf.Timestamp": lambda message: message.ToDatetime(UTC),
    **dict.fromkeys(
        (f"google.protobuf.{name}Value" for name in "Double Float Int64 UInt64 Int32 UInt32 Bool String Bytes".split()),
        lambda message: message.value,
    ),
}
"""Types of messages that are one value."""


def record_of(framed: Framed, registry: Registry, columns: pa.Schema) -> dict[str, Any]:
    """Return the fields of a message that are columns; raise UnreadableMessageError if it is not of its schema."""
    _file(registry, framed.schema)  # says what is wrong with the schema, before the rest of the frame is read
    path, content = _path(framed.content)
    message = _decoder(registry, framed.schema, path)(content)
    try:
        return _fields(message, columns)
    except (ValueError, OverflowError) as error:  # a time that Python does not have
        raise UnreadableMessageError(shortened(str(error))) from None


def _path(content: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the path of a message's type in its file, and the message: a count and so many numbers come before it."""
    count, at = _number(content, 0)
    if not 0 <= count <= _LONGEST_PATH:
        raise UnreadableMessageError("its frame has no path of a type after the identifier of the schema")
    path = []
    for _ in range(count):
        index, at = _number(content, at)
        path.append(index)
    return tuple(path) or (0,), content[at:]


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag varint, and where it ends."""
    value = 0
    for place, byte in enumerate(content[at : at + _VARINT]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise UnreadableMessageError("its frame ends within the path of its type")


@cache
def _decoder(registry: Registry, identifier: int, path: tuple[int, ...]) -> Callable[[bytes], Any]:
    """Return what decodes the messages of one type in one writer's schema."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - an extra
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415

    file = _file(registry, identifier)
    types, found = list(file.message_types_by_name.values()), None
    for index in path:
        if not 0 <= index < len(types):
            raise UnreadableMessageError(f"its schema {identifier} has no type at {list(path)}")
        found = types[index]
        types = list(found.nested_types)
    made = GetMessageClass(found)

    def decoded(content: bytes) -> Any:
        try:
            return made.FromString(content)
        except DecodeError as error:
            raise UnreadableMessageError(f"it is not of its schema {identifier}: {shortened(str(error))}") from None

    return decoded


@cache
def _file(registry: Registry, identifier: int) -> Any:
    """Return the descriptor of the file of a schema."""
    from google.protobuf.descriptor_pool import DescriptorPool  # noqa: PLC0415
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    client, pool = cached_client(registry), DescriptorPool()
    name = f"schema-{identifier}.proto"
    try:
        for file in _files(client, client.schema(identifier, "PROTOBUF", _SERIALIZED), name, set()):
            pool.Add(file)
        return pool.FindFileByName(name)
    except (DecodeError, TypeError, KeyError, ValueError) as error:
        raise UnreadableSchemaError(f"its schema {identifier} cannot be read: {shortened(str(error))}") from None


def _files(client: RegistryClient, schema: Any, name: str, done: set[str]) -> Iterator[Any]:
    """Yield the files that a schema imports, then its own, each once."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto  # noqa: PLC0415

    file = FileDescriptorProto.FromString(base64.standard_b64decode(schema.schema_str))
    referred = {reference.name: reference for reference in schema.references or []}
    for imported in file.dependency:
        if imported in done:
            continue
        done.add(imported)
        if imported in referred:
            yield from _files(client, client.referred(referred[imported], _SERIALIZED), imported, done)
        else:
            yield from _known(imported, done)
    file.name = name
    yield file


def _known(name: str, done: set[str]) -> Iterator[Any]:
    """Yield a file that comes with Protobuf or with the registry's client, after those that it imports.

    Writers do not register these: google/protobuf/timestamp.proto, google/type/date.proto, confluent/meta.proto.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto  # noqa: PLC0415

    if _BUILT_IN.fullmatch(name) is None:
        raise UnreadableSchemaError(f"its schema imports {name}, to which it does not refer in the registry")
    package = "confluent_kafka.schema_registry." if name.startswith("confluent/") else ""
    try:
        module = import_module(f"{package}{name.removesuffix('.proto').replace('/', '.')}_pb2")
    except ImportError:
        raise UnreadableSchemaError(f"its schema imports {name}, which is not installed") from None
    for imported in module.DESCRIPTOR.dependencies:
        if imported.name not in done:
            done.add(imported.name)
            yield from _known(imported.name, done)
    file = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    yield file


def _fields(message: Any, columns: Any) -> dict[str, Any]:
    """Return the fields of a message that are columns, or fields of a struct."""
    fields = message.DESCRIPTOR.fields_by_name
    return {one.name: _field(message, fields[one.name], one.type) for one in columns if one.name in fields}


def _field(message: Any, field: Any, kind: pa.DataType) -> Any:
    """Return the value of a field; None if the sender has not set it, where Protobuf distinguishes that."""
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if not _is_repeated(field):
        return _value(value, field, kind)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_key, of_value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        items = (kind.key_type, kind.item_type) if pa.types.is_map(kind) else (kind, kind)
        return {_value(key, of_key, items[0]): _value(value[key], of_value, items[1]) for key in value}
    inner = kind.value_type if pa.types.is_list(kind) else kind
    return [_value(one, field, inner) for one in value]


def _value(value: Any, field: Any, kind: pa.DataType) -> Any:
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return value if pa.types.is_integer(kind) else str(value) if named is None else named.name
    if field.message_type is None:
        return value
    if (own := _OWN.get(field.message_type.full_name)) is not None:
        return own(value)
    return _fields(value, kind if pa.types.is_struct(kind) else ())


def _is_repeated(field: Any) -> bool:
    # Protobuf 7 has no `label` any more, and versions before 6 have no `is_repeated`.
    repeated = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if repeated is None else bool(repeated)
