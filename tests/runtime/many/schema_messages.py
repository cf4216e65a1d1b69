"""Messages as Confluent's own client writes them, for tests."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP
from google.protobuf.wrappers_pb2 import DESCRIPTOR as WRAPPERS

VALUE = SerializationContext("prices", MessageField.VALUE)


def client(url: str) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": url})


def record(fields: list[tuple[Any, ...]], name: str = "Offer") -> str:
    """Return a schema of Avro; a field is its name, its type, and its default if it has one."""
    made = [{"name": one, "type": kind, **({"default": more[0]} if more else {})} for one, kind, *more in fields]
    return json.dumps({"type": "record", "name": name, "fields": made})


def avro(url: str, schema: str, *rows: dict[str, Any]) -> list[bytes]:
    serializer = AvroSerializer(client(url), schema)
    return [serializer(row, VALUE) or b"" for row in rows]


def types(*files: FileDescriptorProto) -> dict[str, Any]:
    """Return the classes of the messages of the last file, by name; those before it are imported."""
    pool = DescriptorPool()
    for known in (TIMESTAMP, WRAPPERS):
        pool.AddSerializedFile(known.serialized_pb)
    for file in files:
        pool.Add(file)
    return {
        name: GetMessageClass(one) for name, one in pool.FindFileByName(files[-1].name).message_types_by_name.items()
    }


def offer(**fields: Any) -> Any:
    """Return a message of Protobuf with a number `n` and a text `town`."""
    file = FileDescriptorProto(name="offer.proto", syntax="proto3")
    message = file.message_type.add(name="Offer")
    message.field.add(name="town", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    message.field.add(name="n", number=2, type="TYPE_INT64", label="LABEL_OPTIONAL")
    return types(file)["Offer"](**fields)


def protobuf(url: str, *messages: Any) -> list[bytes]:
    options = {"use.deprecated.format": False, "auto.register.schemas": True}
    return [ProtobufSerializer(type(one), client(url), options)(one, VALUE) or b"" for one in messages]
