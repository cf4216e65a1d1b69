"""Messages of Avro and Protobuf with schemas of a registry, written by Confluent's own client."""

from __future__ import annotations

import base64
import math
import re
import struct
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.avro import AvroDeserializer
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.many.schema_messages import VALUE, avro, client, protobuf, record, types
from tests.servers import schema_registry as servers
from tests.servers.ports import free_ports

from skypane.runtime.row_parser import Malformed
from skypane.runtime.spark.sources.many import schema_registry
from skypane.runtime.spark.sources.many.discovery import from_text, listed, to_text
from skypane.runtime.spark.sources.many.record_rows import tables
from skypane.runtime.spark.sources.many.schema_registry import Registry
from skypane.types import ConfigError

T = pa.timestamp("us", "UTC")
COLUMNS = pa.schema([("at", T), ("price", pa.float64()), ("pieces", pa.int64()), ("town", pa.string())])
AT = datetime(2026, 1, 1, 8, tzinfo=UTC)
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
FILE = text_format.Parse(
    """
    name: "offers.proto" package: "shop" syntax: "proto3" dependency: "google/protobuf/timestamp.proto"
    dependency: "google/protobuf/wrappers.proto"
    message_type { name: "Other" field { name: "x" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
    message_type {
      name: "Offer"
      field { name: "at" number: 1 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
      field { name: "price" number: 2 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
      field { name: "pieces" number: 3 type: TYPE_INT64 label: LABEL_OPTIONAL oneof_index: 0 proto3_optional: true }
      field { name: "town" number: 4 type: TYPE_ENUM type_name: ".shop.Offer.Town" label: LABEL_OPTIONAL }
      field { name: "tags" number: 5 type: TYPE_STRING label: LABEL_REPEATED }
      field { name: "limits" number: 6 type: TYPE_MESSAGE type_name: ".shop.Offer.LimitsEntry" label: LABEL_REPEATED }
      field { name: "size" number: 7 type: TYPE_MESSAGE type_name: ".shop.Offer.Size" label: LABEL_OPTIONAL }
      field { name: "tax" number: 8 type: TYPE_MESSAGE type_name: ".google.protobuf.DoubleValue" label: LABEL_OPTIONAL }
      nested_type {
        name: "LimitsEntry" options { map_entry: true }
        field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
        field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
      }
      nested_type {
        name: "Size"
        field { name: "width" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
        field { name: "height" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
      }
      enum_type { name: "Town" value { name: "BERN" number: 0 } value { name: "CHUR" number: 1 } }
      oneof_decl { name: "_pieces" }
    }
    """,
    FileDescriptorProto(),
)
OFFER, OTHER = types(FILE)["Offer"], types(FILE)["Other"]
TOPIC = {"kafka": "b:9092", "topic": "prices", "format": "avro"}


@pytest.fixture
def server() -> Iterator[servers.RegistryServer]:
    with servers.running() as one:
        yield one
    schema_registry.cached_client.cache_clear()


def give(server: servers.RegistryServer, schema: str | FileDescriptorProto, kind: str = "AVRO") -> None:
    """Let the registry have a schema that its writer has not checked."""
    if isinstance(schema, FileDescriptorProto):
        schema, kind = base64.b64encode(schema.SerializeToString()).decode(), "PROTOBUF"
    server.schemas.append({"schema": schema, "schemaType": kind})


def read(form: str, columns: pa.Schema, url: str, values: list[bytes]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return the rows of messages, and what is wrong with the malformed ones, by offset."""
    rows, wrong = [], {}
    for found in tables(form, columns, Registry.of(url, "prices", 2.0), values, [10 * at for at in range(len(values))]):
        if isinstance(found, Malformed):
            wrong[found.offset] = found.error
        else:
            assert found.schema == columns
            found.validate(full=True)
            rows += found.to_pylist()
    return rows, wrong


def test_records_of_avro_become_columns_by_name(server):
    schema = record(
        [("town", "string"), ("price", "double"), ("at", MILLIS), ("more", "int"), ("pieces", ["null", "long"])]
    )
    rows = [{"town": "Bern", "price": 1.5, "at": AT, "more": 7, "pieces": None},
            {"town": "Chur", "price": 2.0, "at": AT, "more": 8, "pieces": 3}]  # fmt: skip
    expected = [{"at": AT, "price": 1.5, "pieces": None, "town": "Bern"},
                {"at": AT, "price": 2.0, "pieces": 3, "town": "Chur"}]  # fmt: skip
    assert read("avro", COLUMNS, server.url, avro(server.url, schema, *rows)) == (expected, {})


def test_each_message_is_read_with_its_writers_schema_and_missing_columns_are_null(server):
    old = record([("price", "double"), ("gone", "string")])
    new = record([("at", MILLIS), ("price", "float"), ("town", "string", "Basel")])
    (first,) = avro(server.url, old, {"price": 1.0, "gone": "x"})
    rows = [{"at": AT, "price": 2.0, "town": "Bern"}, {"at": AT, "price": 3.0, "town": "Chur"}]
    second, third = avro(server.url, new, *rows)
    found, wrong = read("avro", COLUMNS, server.url, [second, first, third, first])
    assert wrong == {}
    assert [(row["at"], row["price"], row["town"]) for row in found] == [
        (AT, 2.0, "Bern"), (None, 1.0, None), (AT, 3.0, "Chur"), (None, 1.0, None),
    ]  # fmt: skip
    server.requests.clear()
    read("avro", COLUMNS, server.url, [first, second] * 50)
    assert server.requests == []


NESTED = record([
    ("id", {"type": "string", "logicalType": "uuid"}), ("sum", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    ("tags", {"type": "array", "items": "string"}), ("limits", {"type": "map", "values": "int"}),
    ("size", ["null", {"type": "record", "name": "Size", "fields": [{"name": "width", "type": "int"}, {"name": "more", "type": "int"}]}]),
    ("kind", {"type": "enum", "name": "Kind", "symbols": ["NEW", "USED"]}), ("raw", "bytes"), ("day", {"type": "int", "logicalType": "date"}),
])  # fmt: skip


def test_nested_values_of_avro(server):
    columns = pa.schema([
        ("id", pa.string()), ("sum", pa.decimal128(9, 2)), ("tags", pa.list_(pa.string())), ("limits", pa.map_(pa.string(), pa.int64())),
        ("size", pa.struct([("width", pa.int32()), ("height", pa.int32())])), ("kind", pa.string()), ("raw", pa.binary()), ("day", pa.date32()),
    ])  # fmt: skip
    id_ = "6f1c8b44-0000-4000-8000-000000000001"
    row = {"id": id_, "sum": Decimal("1.25"), "tags": ["a"], "limits": {"x": 1}, "size": {"width": 3, "more": 4},
           "kind": "USED", "raw": b"\x00\xff", "day": AT.date()}  # fmt: skip
    expected = row | {"limits": [("x", 1)], "size": {"width": 3, "height": None}}
    assert read("avro", columns, server.url, avro(server.url, NESTED, row)) == ([expected], {})


@given(prices=st.lists(st.tuples(st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1), st.text()), max_size=20))
def test_values_are_those_of_confluents_own_reader(prices):
    with servers.running() as server:
        schema = record([("price", "double"), ("pieces", "long"), ("town", "string")])
        rows = [{"price": price, "pieces": pieces, "town": town} for price, pieces, town in prices]
        values = avro(server.url, schema, *rows)
        deserializer = AvroDeserializer(client(server.url))
        expected = [{"at": None} | deserializer(value, VALUE) for value in values]
        assert read("avro", COLUMNS, server.url, values) == (expected, {})


def test_what_cannot_be_decoded_is_malformed_with_its_reason_and_the_others_are_rows(server):
    good, other = avro(server.url, record([("price", "double")]), {"price": 1.0}), b'{"price": 1}'
    (text,) = avro(server.url, record([("price", "string")]), {"price": "dear"})
    (number,) = avro(server.url, record([("at", "long")]), {"at": 1_767_254_400_000})
    (list_,) = avro(server.url, '{"type": "array", "items": "int"}', [1])  # type: ignore[arg-type]
    (proto,) = protobuf(server.url, OFFER(price=1.0))
    unknown = b"\x00\x00\x00\x03\xe7x"
    values = [good[0], other, good[0][:-1], good[0] + b"x", text, number, list_, proto, unknown, unknown, b"", good[0]]
    server.requests.clear()
    found, wrong = read("avro", COLUMNS, server.url, values)
    assert [row["price"] for row in found] == [1.0, 1.0]
    assert wrong[10] == wrong[100]
    assert "does not begin with a byte 0 and the identifier of a schema" in wrong[10]
    assert "it is not of its schema 1" in wrong[20]
    assert "1 bytes follow the record of its schema 1" in wrong[30]
    assert wrong[40].startswith("column price, double: ")
    assert "its field needs a logical type that states the unit" in wrong[50]
    assert "its schema 4 is not of a record" in wrong[60]
    assert "is of PROTOBUF, and not of AVRO" in wrong[70]
    assert wrong[80] == wrong[90] == f"the registry {server.url} has no schema 999"
    assert server.requests.count("GET /schemas/ids/999") == 1


def test_messages_of_protobuf_become_columns_by_name(server):
    whole = OFFER(at=AT, price=1.5, pieces=0, town=1, tags=["a", "b"], limits={"x": 1},
                  size={"width": 3}, tax={"value": 0.1})  # fmt: skip
    columns = pa.schema([*COLUMNS, ("tags", pa.list_(pa.string())), ("limits", pa.map_(pa.string(), pa.int64())),
                         ("size", pa.struct([("width", pa.int32()), ("depth", pa.int32())])), ("tax", pa.float64())])  # fmt: skip
    expected = [
        {"at": AT, "price": 1.5, "pieces": 0, "town": "CHUR", "tags": ["a", "b"], "limits": [("x", 1)],
         "size": {"width": 3, "depth": None}, "tax": 0.1},
        {"at": None, "price": 0.0, "pieces": None, "town": "BERN", "tags": [], "limits": [], "size": None, "tax": None},
    ]  # fmt: skip
    assert read("protobuf", columns, server.url, protobuf(server.url, whole, OFFER())) == (expected, {})
    numbers = pa.schema([("town", pa.int32())])
    assert read("protobuf", numbers, server.url, protobuf(server.url, OFFER(town=1))) == ([{"town": 1}], {})


def test_a_message_of_any_type_of_a_file_is_of_that_type(server):
    columns = pa.schema([("x", pa.int32()), ("price", pa.float64())])
    values = protobuf(server.url, OFFER(price=1.0), OTHER(x=3))
    expected = [{"x": None, "price": 1.0}, {"x": 3, "price": None}]
    assert read("protobuf", columns, server.url, values) == (expected, {})


def test_a_schema_of_protobuf_that_imports_others(server):
    town = FileDescriptorProto(name="towns/town.proto", package="geo", syntax="proto3")
    town.message_type.add(name="Town").field.add(name="name", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    file = FileDescriptorProto(name="sale.proto", syntax="proto3", dependency=[town.name])
    file.message_type.add(name="Sale").field.add(
        name="town", number=1, type="TYPE_MESSAGE", type_name=".geo.Town", label="LABEL_OPTIONAL"
    )
    sale = types(town, file)["Sale"]
    columns = pa.schema([("town", pa.struct([("name", pa.string())]))])
    values = protobuf(server.url, sale(town={"name": "Bern"}), sale())
    assert read("protobuf", columns, server.url, values) == ([{"town": {"name": "Bern"}}, {"town": None}], {})
    assert list(server.versions) == ["towns/town.proto", "prices-value"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("google/type/datetime.proto", "google.type.DateTime"), ("google/protobuf/api.proto", "google.protobuf.Api"),
     ("confluent/meta.proto", "confluent.Meta")],
)  # fmt: skip
def test_a_schema_of_protobuf_that_imports_what_no_writer_registers(server, name: str, kind: str):
    file = FileDescriptorProto(name="sale.proto", syntax="proto3", dependency=[name])
    sale = file.message_type.add(name="Sale")
    sale.field.add(name="price", number=1, type="TYPE_DOUBLE", label="LABEL_OPTIONAL")
    sale.field.add(name="more", number=2, type="TYPE_MESSAGE", type_name=f".{kind}", label="LABEL_OPTIONAL")
    give(server, file)
    found, wrong = read("protobuf", COLUMNS, server.url, [b"\x00\x00\x00\x00\x01\x00\x09" + struct.pack("<d", 2.0)])
    assert ([row["price"] for row in found], wrong) == ([2.0], {})


def test_an_import_that_is_in_no_registry_is_malformed_with_its_name(server):
    file = FileDescriptorProto(name="sale.proto", syntax="proto3", dependency=["towns/town.proto"])
    give(server, file)
    _, wrong = read("protobuf", COLUMNS, server.url, [b"\x00\x00\x00\x00\x01\x00"])
    assert wrong == {0: "its schema imports towns/town.proto, to which it does not refer in the registry"}


def test_what_is_not_protobuf_is_malformed_with_its_reason(server):
    (good,) = protobuf(server.url, OFFER(price=1.0))
    no_type = good[:5] + b"\x02\x12"
    (of_avro,) = avro(server.url, record([("x", "int")]), {"x": 1})
    (late,) = protobuf(server.url, OFFER(at={"seconds": 10**12}))
    values = [good, good[:-1], good[:5], no_type, b"\x00\x00", of_avro, late]
    found, wrong = read("protobuf", COLUMNS, server.url, values)
    assert [row["price"] for row in found] == [1.0]
    assert "it is not of its schema 1" in wrong[10]
    assert wrong[20] == "its frame ends within the path of its type"
    assert wrong[30] == "its schema 1 has no type at [9]"
    assert "does not begin with a byte 0" in wrong[40]
    assert "is of AVRO, and not of PROTOBUF" in wrong[50]
    assert "1000000000000" in wrong[60]


@given(value=st.binary(max_size=40), cut=st.integers(0, 30))
def test_no_bytes_end_the_reader(value: bytes, cut: int):
    with servers.running() as server:
        heads = {"avro": avro(server.url, NESTED.replace("uuid", "x"), {
            "id": "a", "sum": Decimal("1.25"), "tags": ["a"], "limits": {"x": 1}, "size": None, "kind": "NEW", "raw": b"", "day": AT.date()})[0],
            "protobuf": protobuf(server.url, OFFER(price=1.0, tags=["a"]))[0]}  # fmt: skip
        for form, good in heads.items():
            for one in (value, good[:5] + value, good[:cut] + value, good[:cut] + value + good[cut:]):
                rows, wrong = read(form, pa.schema([("tags", pa.list_(pa.string()))]), server.url, [one, good])
                assert len(rows) + len(wrong) == 2
                assert rows[-1] == {"tags": ["a"]}


TREE = record([("price", "double"), ("inner", ["null", "Offer"])])


def test_a_message_of_a_schema_that_contains_itself_is_a_row_or_is_malformed_however_deep_it_is(server):
    """fastavro's reader in C has no limit of its depth: it would end the process, at each start of the query again."""
    (good,) = avro(server.url, TREE, {"price": 1.0, "inner": {"price": 2.0, "inner": None}})
    (endless,) = avro(server.url, record([("next", ["null", "Endless"])], "Endless"), {"next": None})
    deep = endless[:5] + b"\x02" * 1_000_000 + b"\x00"
    found, wrong = read("avro", COLUMNS, server.url, [good, deep, good])
    assert [row["price"] for row in found] == [1.0, 1.0]
    assert list(wrong) == [10]
    assert "recursion" in wrong[10]


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null", "x": 1},
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "null"}]},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "R"}]},
    ],
)
def test_a_schema_by_which_a_short_message_declares_any_number_of_values_is_malformed(server, items: object):
    schema = record([("price", "double"), ("lists", {"type": "map", "values": {"type": "array", "items": items}})])
    (message,) = avro(server.url, schema, {"price": 1.0, "lists": {}})
    found, wrong = read("avro", COLUMNS, server.url, [message])
    assert (found, list(wrong)) == ([], [0])
    assert "an array whose items take no bytes" in wrong[0]


def _doubled(times: int, inner: object) -> object:
    """Return a record that has two records, which have two each, and so on."""
    for at in range(times):
        again = inner["name"] if isinstance(inner, dict) else inner
        inner = {
            "type": "record",
            "name": f"R{at}",
            "fields": [{"name": "a", "type": inner}, {"name": "b", "type": again}],
        }
    return inner


@pytest.mark.parametrize(
    "inner", ["null", {"type": "fixed", "name": "F", "size": 0}, {"type": "record", "name": "E", "fields": []}]
)
@pytest.mark.parametrize("within", [lambda kind: kind, lambda kind: {"type": "array", "items": kind}])
def test_a_schema_with_more_values_than_bytes_is_malformed(server, inner: object, within: Any):
    give(server, record([("price", "double"), ("more", within(_doubled(40, inner)))]))
    found, wrong = read("avro", COLUMNS, server.url, [struct.pack(">bId", 0, 1, 1.0)])
    assert (found, list(wrong)) == ([], [0])
    assert re.search(
        "values in one that take no bytes, and at most 32 are read|an array whose items take no bytes", wrong[0]
    )


def test_a_schema_with_many_fields_that_may_be_null_is_read(server):
    fields = [("price", "double"), *((f"f{at}", ["null", "string"]) for at in range(1_000)), ("nothing", "null")]
    messages = avro(server.url, record(fields), {"price": 1.5} | {f"f{at}": None for at in range(1_000)})
    assert [row["price"] for row in read("avro", COLUMNS, server.url, messages)[0]] == [1.5]


def _sum(form: object, precision: int, scale: int, unscaled: bytes) -> tuple[str, bytes]:
    kind = form if isinstance(form, dict) else {"type": form}
    schema = record([("sum", kind | {"logicalType": "decimal", "precision": precision, "scale": scale})])
    return schema, unscaled if isinstance(form, dict) else _varint(len(unscaled)) + unscaled


@pytest.mark.parametrize(
    ("unscaled", "value"),
    [
        (b"", "0.00"), (b"\0", "0.00"), (b"\x7d", "1.25"), (b"\x83", "-1.25"), (b"\0" * 1_000 + b"\x7d", "1.25"), (b"\xff" * 1_000 + b"\x83", "-1.25"),
        (b"\xff" * 9, "-0.01"), ((10**38 - 1).to_bytes(16, "big"), "9" * 36 + ".99"), ((1 - 10**38).to_bytes(16, "big", signed=True), "-" + "9" * 36 + ".99"),
        ((10**38).to_bytes(16, "big"), None), ((-(10**38)).to_bytes(16, "big", signed=True), None), (b"\x7f" * (1 << 20), None), (b"\x80" * 33, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fixed", [False, True])
def test_a_decimal_is_exact_or_malformed_whatever_its_length(server, unscaled: bytes, value: str | None, fixed: bool):
    form = {"type": "fixed", "name": "F", "size": max(len(unscaled), 16)} if fixed else "bytes"
    sign = b"\xff" if unscaled[:1] >= b"\x80" else b"\0"
    schema, content = _sum(form, 38, 2, unscaled.rjust(16, sign) if fixed else unscaled)
    give(server, schema)
    found, wrong = read(
        "avro", pa.schema([("sum", pa.decimal128(38, 2))]), server.url, [struct.pack(">bI", 0, 1) + content]
    )
    if value is None:
        assert "has more than 38 digits" in wrong[0]
    else:
        assert (found, wrong) == ([{"sum": Decimal(value)}], {})


def test_times_in_nanoseconds_are_cut_to_microseconds(server):
    nanos = {"type": "long", "logicalType": "timestamp-nanos"}
    for schema in (record([("at", nanos)]), record([("at", nanos), ("inner", ["null", "Offer"])])):
        give(server, schema)
    at = 1_767_225_600_123_456_789
    coded = struct.pack(">bI", 0, 1) + _varint(at), struct.pack(">bI", 0, 2) + _varint(at) + b"\0"
    found, wrong = read("avro", pa.schema([("at", T)]), server.url, [*coded])
    assert (found, wrong) == ([{"at": datetime(2026, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)}] * 2, {})


def _varint(number: int) -> bytes:
    number, coded = number << 1, b""
    while number >= 0x80:
        coded, number = coded + bytes([number & 0x7F | 0x80]), number >> 7
    return coded + bytes([number])


def test_a_schema_that_the_registry_does_not_have_is_requested_again_after_a_while(server, monkeypatch):
    unknown = b"\x00\x00\x00\x00\x01x"
    for _ in range(3):
        assert "has no schema 1" in read("avro", COLUMNS, server.url, [unknown])[1][0]
    assert server.requests == ["GET /schemas/ids/1"]
    give(server, record([("price", "double")]))
    now = time.monotonic()
    monkeypatch.setattr("skypane.runtime.spark.sources.many.schema_registry.time.monotonic", lambda: now + 60)
    assert (
        read("avro", COLUMNS, server.url, [struct.pack(">bId", 0, 1, 1.5)[:5] + struct.pack("<d", 1.5)])[0][0]["price"]
        == 1.5
    )


def test_schemas_that_cannot_be_read_are_malformed_with_the_reason(server):
    for schema in (
        '{"type": "record", "name": "A", "fields": 3}', '{"type": "x"}', '{"type": "array"}',
        '{"type":"array","items":' * 100_000 + '"int"' + "}" * 100_000,
    ):  # fmt: skip
        give(server, schema)
    give(server, 'syntax = "proto3"; message A { int64 n = 1; }', "PROTOBUF")
    heads = [struct.pack(">bI", 0, at + 1) for at in range(5)]
    _, wrong = read("avro", COLUMNS, server.url, heads[:4])
    assert list(wrong) == [0, 10, 20, 30]
    assert all("its schema cannot be read" in one for one in wrong.values())
    _, wrong = read("protobuf", COLUMNS, server.url, [heads[4] + b"\x00"])
    assert "its schema 5 cannot be read" in wrong[0]


def test_schemas_that_refer_to_the_same_one_are_read(server):
    registry = client(server.url)
    registry.register_schema("town", Schema(record([("name", "string")], "Town"), "AVRO"))
    town = SchemaReference("Town", "town", 1)
    for name in ("From", "To"):
        registry.register_schema(name, Schema(record([("town", "Town")], name), "AVRO", [town]))
    both = [SchemaReference(one, one, 1) for one in ("From", "To")]
    trip = Schema(record([("a", "From"), ("b", "To")]), "AVRO", both)
    columns = pa.schema([("b", pa.struct([("town", pa.struct([("name", pa.string())]))]))])
    values = avro(server.url, trip, {"a": {"town": {"name": "Bern"}}, "b": {"town": {"name": "Chur"}}})
    assert read("avro", columns, server.url, values) == ([{"b": {"town": {"name": "Chur"}}}], {})


@pytest.mark.parametrize(
    ("kind", "value", "column", "message"),
    [
        ("double", 1.5, pa.int64(), "1.5 is not a whole number"),
        ("double", math.nan, pa.int64(), "NaN"),
        ("boolean", True, pa.float64(), "True is not a number"),
        ("double", 1.5, T, "1.5 is a number; its field needs a logical type"),
        ("int", 19_000, pa.date32(), "19000 is not a date"),
        (MILLIS, AT, pa.date32(), "is not a date"),
        ("string", "abc", pa.list_(pa.string()), "'abc' is not a list"),
        ("bytes", b"abc", pa.list_(pa.int64()), "b'abc' is not a list"),
        ("string", "abc", pa.map_(pa.string(), pa.string()), "'abc' is neither a record nor a map"),
        ("string", "abc", pa.struct([("a", pa.string())]), "'abc' is neither a record nor a map"),
        ("bytes", b"\xff", pa.string(), "utf8"),
        (MILLIS, AT, pa.timestamp("us"), "is an instant; a column of it is a timestamp"),
        (LOCAL, AT.replace(tzinfo=None), T, "is a time without a zone"),
        ({"type": "array", "items": LOCAL}, [AT.replace(tzinfo=None)], pa.list_(T), "is a time without a zone"),
        ("double", 1.1, pa.float32(), "1.1 is not a number of 32 bits"),
        ("double", 1e300, pa.float32(), "1e+300 is not a number of 32 bits"),
        ("long", 2**53 + 1, pa.float64(), "outside of the range exactly representable"),
        ("long", 3, pa.duration("us"), "3 is not an interval"),
    ],
)
def test_a_value_that_a_column_would_change_is_malformed(
    server, kind: Any, value: object, column: pa.DataType, message: str
):
    """Arrow would cut numbers off, take a text for the list of its letters, and a number for a day."""
    values = avro(server.url, record([("x", kind)]), {"x": value})
    found, wrong = read("avro", pa.schema([("x", column)]), server.url, values)
    assert found == []
    assert wrong[0].startswith(f"column x, {column}: ")
    assert message in wrong[0]


def test_whole_numbers_fit_a_column_of_whole_numbers_whatever_their_type_is(server):
    values = avro(server.url, record([("x", "double")]), {"x": 2.0})
    assert read("avro", pa.schema([("x", pa.int64())]), server.url, values) == ([{"x": 2}], {})


@pytest.mark.parametrize("number", [-0.0, 1.5, math.inf, 2.0**-149])
def test_a_double_that_32_bits_hold_fits_a_float(server, number: float):
    values = avro(server.url, record([("x", "double")]), {"x": number})
    assert read("avro", pa.schema([("x", pa.float32())]), server.url, values) == ([{"x": number}], {})


def test_an_identifier_that_no_registry_gives_is_malformed_without_a_request(server):
    found, wrong = read("avro", COLUMNS, server.url, [b"\x00\xff\xff\xff\xffx"])
    assert (found, server.requests) == ([], [])
    assert "it names the schema 4294967295, but a registry gives none above" in wrong[0]


def test_a_url_that_is_not_a_registrys_stops_the_batch_instead_of_leaving_all_messages_out(server):
    values = avro(server.url, record([("price", "double")]), {"price": 1.0})
    with pytest.raises(ConfigError, match=r"registry http.*/wrong refuses schema 1 \(404: .*check the url"):
        read("avro", COLUMNS, f"{server.url}/wrong", values)


def test_no_error_shows_a_password_that_a_variable_brings_into_the_url(monkeypatch):
    monkeypatch.setenv("REGISTRY", "http://me:secret@localhost:1")
    with pytest.raises(ConfigError, match=r"registry \$REGISTRY: the url of the registry has a password") as error:
        Registry.of("$REGISTRY", "prices", 1.0).resolved()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [{"ssl.ca.location": "/no/such/file"}, {"basic.auth.user.info": "secret"}, {"bearer.auth.token": "secret"}],
)
def test_options_that_the_client_refuses_are_named_without_the_secret(options: dict[str, str]):
    with pytest.raises(ConfigError, match=r"options of the registry http://r: ") as error:
        schema_registry.RegistryClient(Registry.of({"url": "http://r", **options}, "prices", 1.0))
    assert "secret" not in str(error.value)


@pytest.mark.slow
def test_a_registry_that_refuses_or_is_silent_stops_the_batch_and_loses_nothing(server):
    values = avro(server.url, record([("price", "double")]), {"price": 1.0})
    server.guarded = True
    with pytest.raises(ConfigError, match=r"registry http.* refuses schema 1 \(401: Unauthorized\); check the login"):
        read("avro", COLUMNS, server.url, values)
    server.guarded, server.broken = False, 500
    with pytest.raises(TimeoutError, match=r"does not give schema 1, which a started batch needs.*restart the query"):
        read("avro", COLUMNS, server.url, values)
    (port,) = free_ports(1)
    with pytest.raises(TimeoutError, match=rf"127.0.0.1:{port} does not give schema 1.*refused"):
        read("avro", COLUMNS, f"http://127.0.0.1:{port}", values)
    server.broken = None
    assert read("avro", COLUMNS, server.url, values)[1] == {}


def test_the_login_of_a_registry_is_a_variable_and_is_not_shown(server, monkeypatch):
    values = avro(server.url, record([("price", "double")]), {"price": 1.0})
    server.guarded = True
    (one,) = listed([TOPIC | {"registry": {"url": server.url, "basic.auth.user.info": "$REGISTRY_LOGIN"}}])
    assert servers.LOGIN not in to_text([one]) + repr(one)
    assert from_text(to_text([one])) == (one,)
    message = r"option basic.auth.user.info of the registry is in the environment variable REGISTRY_LOGIN"
    with pytest.raises(ConfigError, match=message):
        one.registry.resolved()  # type: ignore[attr-defined]
    monkeypatch.setenv("REGISTRY_LOGIN", servers.LOGIN)
    registry = one.registry.resolved()  # type: ignore[attr-defined]
    assert servers.LOGIN not in repr(registry)
    (found,) = tables("avro", COLUMNS, registry, values, [0])
    assert isinstance(found, pa.Table)
    assert found["price"].to_pylist() == [1.0]


def test_a_secret_of_a_registry_in_the_list_itself_is_refused():
    listing = listed([TOPIC | {"registry": {"url": "http://r", "bearer.auth.token": "secret"}}])
    with pytest.raises(ConfigError, match=r"option bearer.auth.token of the registry would be shown.*\$NAME") as error:
        to_text(listing)
    assert "secret" not in str(error.value)


def test_a_registry_without_its_packages_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(schema_registry, "find_spec", lambda _name: None)
    message = r"needs the package httpx2, which is not installed: pip install 'skypane\[schema-registry\]'"
    with pytest.raises(ConfigError, match=message):
        listed([TOPIC | {"registry": "http://r"}])
