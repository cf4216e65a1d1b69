"""Values as messages of Avro and Protobuf carry them, written by Confluent's own client and read by inputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from tests.runtime.many.schema_messages import avro, protobuf, types
from tests.servers import schema_registry

from skypane.runtime.row_parser import Malformed
from skypane.runtime.spark.sources.many.record_rows import tables
from skypane.runtime.spark.sources.many.schema_registry import Registry
from skypane.types import ConfigError

_AVRO: Final[dict[str, Any]] = {
    "bool": "boolean", "int8": "int", "int16": "int", "int32": "int", "int64": "long", "float": "float", "double": "double",
    "string": "string", "binary": "bytes", "date32[day]": {"type": "int", "logicalType": "date"},
    "timestamp[us, tz=UTC]": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp[us]": {"type": "long", "logicalType": "local-timestamp-micros"},
}  # fmt: skip
_PROTOBUF: Final = {
    "bool": "TYPE_BOOL", "int8": "TYPE_INT32", "int16": "TYPE_INT32", "int32": "TYPE_INT32", "int64": "TYPE_INT64",
    "float": "TYPE_FLOAT", "double": "TYPE_DOUBLE", "string": "TYPE_STRING", "binary": "TYPE_BYTES",
    "timestamp[us, tz=UTC]": ".google.protobuf.Timestamp",
}  # fmt: skip
"""What Protobuf has no type for is sent as a text."""


@contextmanager
def registry() -> Iterator[dict[str, Callable[[pa.DataType, Any], list[Any]]]]:
    """Run a registry; yield what writes a value as a message of each format, and returns what is read."""
    with schema_registry.running() as server:
        yield {form: partial(_read, form.lower(), server.url) for form in ("Avro", "Protobuf")}


def _read(form: str, url: str, kind: pa.DataType, value: Any) -> list[Any]:
    messages = _in_avro(url, kind, value) if form == "avro" else _in_protobuf(url, kind, value)
    found = tables(form, pa.schema([("v", kind)]), Registry.of(url, "values", 10.0), messages, [0])
    return [one if isinstance(one, Malformed) else one["v"].to_pylist()[0] for one in found]


def _in_avro(url: str, kind: pa.DataType, value: Any) -> list[bytes]:
    fields = [{"name": "v", "type": _avro_type(kind)}]
    sent = dict(value) if pa.types.is_map(kind) else value
    return avro(url, json.dumps({"type": "record", "name": "Values", "fields": fields}), {"v": sent})


def _avro_type(kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type)]}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _avro_type(kind.item_type)}
    if pa.types.is_struct(kind):
        return {
            "type": "record",
            "name": "Within",
            "fields": [{"name": one.name, "type": _avro_type(one.type)} for one in kind],
        }
    return _AVRO[str(kind)]


def _in_protobuf(url: str, kind: pa.DataType, value: Any) -> list[bytes]:
    file = FileDescriptorProto(name="values.proto", syntax="proto3", dependency=["google/protobuf/timestamp.proto"])
    _add(file.message_type.add(name="Values"), "v", 1, kind)
    made = types(file)["Values"]()
    try:
        _set(made, "v", kind, value)
    except TypeError:  # a list with a null, which Protobuf does not have
        raise ConfigError(f"Protobuf has no {value}") from None
    return protobuf(url, made)


def _add(message: DescriptorProto, name: str, number: int, kind: pa.DataType) -> None:
    """Add a field of a type to a message."""
    of = kind.value_type if pa.types.is_list(kind) else kind
    repeated = pa.types.is_list(kind) or pa.types.is_map(kind)
    field = message.field.add(name=name, number=number, label="LABEL_REPEATED" if repeated else "LABEL_OPTIONAL")
    if pa.types.is_struct(of) or pa.types.is_map(of):
        within = message.nested_type.add(name="VEntry")
        parts = [("key", of.key_type), ("value", of.item_type)] if repeated else [(one.name, one.type) for one in of]
        for at, (part, inner) in enumerate(parts, 1):
            _add(within, part, at, inner)
        within.options.map_entry = repeated
        field.type_name = ".Values.VEntry"
        field.type = FieldDescriptorProto.TYPE_MESSAGE
    elif (known := _PROTOBUF.get(str(of), "TYPE_STRING")).startswith("."):
        field.type_name, field.type = known, FieldDescriptorProto.TYPE_MESSAGE
    else:
        field.type = FieldDescriptorProto.Type.Value(known)


def _set(message: Any, name: str, kind: pa.DataType, value: Any) -> None:
    if pa.types.is_struct(kind):
        for one in kind:
            _set(getattr(message, name), one.name, one.type, value[one.name])
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        getattr(message, name).FromDatetime(value)
    elif pa.types.is_map(kind):
        getattr(message, name).update(dict(value))
    elif pa.types.is_list(kind):
        texts = str(kind.value_type) not in _PROTOBUF
        getattr(message, name).extend([str(one) if texts else one for one in value])
    else:
        setattr(message, name, value if str(kind) in _PROTOBUF else str(value))
