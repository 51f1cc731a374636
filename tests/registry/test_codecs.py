"""Values in both directions, with Confluent's own serializers as the oracle."""

import base64
import json
import pickle
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import MessageToDict, ParseDict

from kctl.cli.errors import CliError
from kctl.registry.client import RegistryClient, RegistryError
from kctl.registry.codecs import Decoder, Encoder
from kctl.registry.protobuf import ProtobufCodec, _class
from kctl.registry.schemas import (
    Reference,
    Schema,
    SchemaType,
    UndecodableValue,
    UnencodableValue,
)
from kctl.registry.settings import parse_settings
from kctl.registry.wire import join_value
from tests.support.registry import RunningRegistry, running_registry

VALUE = SerializationContext("orders", MessageField.VALUE)

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "either", "type": ["int", "string", "boolean", "double"]},
        {"name": "data", "type": "bytes"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "hour", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "parent", "type": ["null", "Order"], "default": None},
        {"name": "ratio", "type": "double", "default": 0.5},
    ],
}
KEY = uuid.UUID(int=7)
NATIVE: dict[str, Any] = {
    "id": 1,
    "note": "ä",
    "either": True,
    "data": b"\x00\xff",
    "hash": b"ab",
    "state": "DONE",
    "day": date(2026, 11, 18),
    "hour": time(7, 30),
    "at": datetime(2026, 11, 18, 7, 30, tzinfo=UTC),
    "key": KEY,
    "price": Decimal("12.50"),
    "tags": ["a", "b"],
    "counts": {"x": 1},
    "parent": None,
    "ratio": 0.5,
}
DOCUMENT: dict[str, Any] = NATIVE | {
    "either": {"boolean": True},
    "data": "\x00\xff",
    "hash": "ab",
    "day": "2026-11-18",
    "hour": "07:30:00",
    "at": "2026-11-18T07:30:00Z",
    "key": str(KEY),
    "price": "12.50",
}
PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  message Line { string item = 1; int32 count = 2; }
  int64 id = 1;
  repeated Line lines = 2;
  optional string note = 3;
  google.protobuf.Timestamp at = 4;
  State state = 5;
  map<string, int64> counts = 6;
  bytes data = 7;
  oneof payment { string card = 8; int32 voucher = 9; }
}
message Refund { int64 order_id = 1; }
enum State { NEW = 0; DONE = 1; }
"""
PROTO_DOCUMENT = {
    "id": "5",
    "lines": [{"item": "plum", "count": 3}],
    "note": "x",
    "at": "2026-11-18T07:30:00Z",
    "state": "DONE",
    "counts": {"a": "1"},
    "data": "AP8=",
    "voucher": 9,
}
JSON_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}},
    "required": ["id"],
}


@pytest.fixture
def registry() -> Iterator[RunningRegistry]:
    with running_registry() as running:
        yield running


@pytest.fixture
def client(registry: RunningRegistry) -> RegistryClient:
    return RegistryClient(parse_settings(registry.url, {}, lambda _: None))


@pytest.fixture
def confluent(registry: RunningRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def registered(client: RegistryClient, schema: Any, kind: SchemaType = SchemaType.AVRO) -> Schema:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return client.register("orders-value", Schema(kind, text))


def test_avro_of_confluents_serializer_is_decoded(
    client: RegistryClient, confluent: SchemaRegistryClient
) -> None:
    data = AvroSerializer(confluent, json.dumps(ORDER))(NATIVE | {"parent": NATIVE}, VALUE)
    assert data is not None
    decoder = Decoder(client)
    assert decoder.decode(data) == NATIVE | {"parent": NATIVE}
    assert decoder.document(data) == DOCUMENT | {"parent": DOCUMENT}
    assert decoder.schema(data).type is SchemaType.AVRO


def test_avro_is_read_by_confluents_deserializer(
    client: RegistryClient, confluent: SchemaRegistryClient
) -> None:
    encoder = Encoder(client, registered(client, ORDER))
    given = {key: value for key, value in DOCUMENT.items() if key not in ("parent", "ratio")}
    data = encoder.encode(given | {"either": True, "at": 1_795_073_400_000})
    assert AvroDeserializer(confluent)(data, VALUE) == NATIVE | {
        "at": datetime.fromtimestamp(1_795_073_400, UTC)
    }


def test_avro_document_is_encoded_to_the_same_bytes(client: RegistryClient) -> None:
    encoder = Encoder(client, registered(client, ORDER))
    data = encoder.encode(DOCUMENT)
    assert encoder.encode(Decoder(client).document(data)) == data


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": "1"}, "id: '1' is not an integer"),
        ({"id": 1 << 63}, "out of the range of long"),
        ({"ide": 1}, "ide: shop.Order has no such field"),
        ({"state": "LOST"}, "state: 'LOST' is not one of NEW, DONE"),
        ({"hash": "abc"}, "hash: it has 3 bytes; the type has 2"),
        ({"data": "€"}, "data: bytes are text"),
        ({"day": "tomorrow"}, "day: 'tomorrow' is not a date"),
        ({"tags": ["a", 1]}, "tags[1]: 1 is not a string"),
        ({"either": []}, "either: [] is not one of int, string, boolean, double"),
        ({"parent": {"id": 1}}, "parent.either: it is missing"),
        ({"price": "1.234"}, ""),
    ],
)
def test_avro_document_that_does_not_fit_names_the_field(
    client: RegistryClient, change: dict[str, Any], reason: str
) -> None:
    encoder = Encoder(client, registered(client, ORDER))
    with pytest.raises(UnencodableValue) as error:
        encoder.encode(DOCUMENT | change)
    assert reason in str(error.value)


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "A", "fields": list(fields)}


def test_avro_reader_schema_projects_older_values(client: RegistryClient) -> None:
    more = {"name": "more", "type": "string", "default": "-"}
    gone = {"name": "gone", "type": "string"}
    old = registered(client, record({"name": "id", "type": "int"}, gone))
    new = registered(client, record({"name": "id", "type": "long"}, more))
    data = Encoder(client, old).encode({"id": 1, "gone": "x"})
    assert Decoder(client, reader=new).decode(data) == {"id": 1, "more": "-"}
    assert Decoder(client, reader=new).document(data) == {"id": 1, "more": "-"}
    other = registered(client, '"string"')
    with pytest.raises(UndecodableValue, match="reader schema"):
        Decoder(client, reader=other).decode(data)


def test_avro_schema_with_references(
    client: RegistryClient, confluent: SchemaRegistryClient
) -> None:
    address = {"type": "record", "name": "a.Address", "fields": [{"name": "x", "type": "string"}]}
    client.register("address", Schema(SchemaType.AVRO, json.dumps(address)))
    person = {"type": "record", "name": "Person", "fields": [{"name": "home", "type": "a.Address"}]}
    references = (Reference("a.Address", "address", 1),)
    schema = client.register("p", Schema(SchemaType.AVRO, json.dumps(person), references))
    data = Encoder(client, schema).encode({"home": {"x": "y"}})
    assert Decoder(client).document(data) == {"home": {"x": "y"}}
    same = ConfluentSchema(json.dumps(person), "AVRO", [SchemaReference("a.Address", "address", 1)])
    settings = {"auto.register.schemas": True, "subject.name.strategy": lambda *_: "p"}
    assert AvroSerializer(confluent, same, conf=settings)({"home": {"x": "y"}}, VALUE) == data


def test_avro_bytes_have_no_length_as_in_java(client: RegistryClient) -> None:
    schema = registered(client, '"bytes"')
    assert Encoder(client, schema).encode("ab") == join_value(schema.id or 0, b"ab")
    assert Decoder(client).decode(join_value(schema.id or 0, b"ab")) == b"ab"


def test_protobuf_of_confluents_serializer_is_decoded(
    client: RegistryClient, confluent: SchemaRegistryClient
) -> None:
    """Confluent's Python serializer registers a serialized descriptor instead of text."""
    codec = ProtobufCodec(Schema(SchemaType.PROTOBUF, PROTO), {})
    order, line = (_class(codec._select(name)[1]) for name in ("shop.Order", "Line"))
    for message, expected in (
        (order(id=5, note="x", data=b"\0\xff", lines=[{"item": "plum", "count": 3}]), 5),
        (line(item="plum"), "plum"),
    ):
        serializer = ProtobufSerializer(type(message), confluent)
        data = serializer(message, VALUE)
        assert data is not None
        decoded = Decoder(client).decode(data)
        assert expected in decoded.values()
        document = MessageToDict(
            message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        assert Decoder(client).document(data) == document


def test_protobuf_payload_equals_confluents(
    client: RegistryClient, confluent: SchemaRegistryClient
) -> None:
    schema = registered(client, PROTO, SchemaType.PROTOBUF)
    codec = ProtobufCodec(Schema(SchemaType.PROTOBUF, PROTO), {})
    for name, document in (
        ("shop.Order", PROTO_DOCUMENT),
        ("Line", {"item": "plum", "count": 2}),
        ("Refund", {"order_id": "7"}),
    ):
        data = Encoder(client, schema, name).encode(document)
        cls = _class(codec._select(name)[1])
        decoded = Decoder(client).document(data)
        assert document.items() <= decoded.items()
        message = cls()
        ParseDict(document, message, descriptor_pool=codec._file.pool)
        theirs = ProtobufSerializer(cls, confluent)(message, VALUE)
        assert theirs is not None
        assert theirs[5:] == data[5:]  # the same but for the id: theirs is a descriptor


def test_protobuf_decodes_to_python_objects(client: RegistryClient) -> None:
    schema = registered(client, PROTO, SchemaType.PROTOBUF)
    data = Encoder(client, schema, "Order").encode(PROTO_DOCUMENT)
    assert Decoder(client).decode(data) == {
        "id": 5,
        "lines": [{"item": "plum", "count": 3}],
        "note": "x",
        "at": {"seconds": 1794987000, "nanos": 0},
        "state": "DONE",
        "counts": {"a": 1},
        "data": b"\0\xff",
        "card": None,
        "voucher": 9,
    }


def test_protobuf_with_imports(client: RegistryClient) -> None:
    text = 'syntax = "proto3"; package a; message Address { string x = 1; }'
    client.register("address", Schema(SchemaType.PROTOBUF, text))
    main = 'syntax = "proto3"; import "a/b.proto"; message P { a.Address home = 1; }'
    references = (Reference("a/b.proto", "address", 1),)
    schema = client.register("p", Schema(SchemaType.PROTOBUF, main, references))
    data = Encoder(client, schema).encode({"home": {"x": "y"}})
    assert Decoder(client).document(data) == {"home": {"x": "y"}}


@pytest.mark.parametrize(
    ("document", "message", "reason"),
    [
        ({"idd": 1}, "Order", "idd"),
        ({"id": "x"}, "Order", "id"),
        ([1], "Order", "Failed to parse"),
        ({}, None, "choose one of shop.Order"),
        ({}, "Nope", "no message 'Nope'"),
    ],
)
def test_protobuf_document_that_does_not_fit_is_refused(
    client: RegistryClient, document: Any, message: str | None, reason: str
) -> None:
    schema = registered(client, PROTO, SchemaType.PROTOBUF)
    with pytest.raises(UnencodableValue, match=reason):
        Encoder(client, schema, message).encode(document)


def test_json_schema_both_ways(client: RegistryClient, confluent: SchemaRegistryClient) -> None:
    theirs = JSONSerializer(json.dumps(JSON_SCHEMA), confluent)({"id": 1}, VALUE)
    assert theirs is not None
    assert Decoder(client).decode(theirs) == {"id": 1}
    encoder = Encoder(client, registered(client, JSON_SCHEMA, SchemaType.JSON))
    data = encoder.encode({"id": 1, "note": "ä"})
    read = JSONDeserializer(json.dumps(JSON_SCHEMA))(data, VALUE)
    assert read == {"id": 1, "note": "ä"}
    with pytest.raises(UnencodableValue, match=r"\$\.id: 'x' is not of type 'integer'"):
        encoder.encode({"id": "x"})


def test_undecodable_values_say_why(client: RegistryClient, registry: RunningRegistry) -> None:
    schema = registered(client, ORDER)
    broken = client.register("b", Schema(SchemaType.PROTOBUF, "message {"))
    elsewhere = Schema(SchemaType.PROTOBUF, "", (Reference("../x", "orders-value", 1),))
    outside = client.register("c", elsewhere)
    decoder = Decoder(client)
    for data, reason in (
        (b"plain", "magic byte"),
        (join_value(99, b""), "no schema 99"),
        (join_value(schema.id or 0, b"\x02"), "does not have its schema"),
        (join_value(schema.id or 0, b"\xff" * 40), "does not have its schema"),
        (join_value(broken.id or 0, b"\0"), "Protobuf schema is not valid"),
        (join_value(outside.id or 0, b"\0"), "not a relative path"),
    ):
        for _ in range(2):
            with pytest.raises(UndecodableValue, match=reason):
                decoder.document(data)
    assert registry.state.requests.count("GET /schemas/ids/99") == 1


def test_expected_type_is_checked(client: RegistryClient) -> None:
    schema = registered(client, '"string"')
    data = Encoder(client, schema).encode("x")
    with pytest.raises(UndecodableValue, match="has the type AVRO"):
        Decoder(client, expected=SchemaType.PROTOBUF).decode(data)


def test_decoder_can_be_pickled_for_tasks(client: RegistryClient) -> None:
    schema = registered(client, PROTO, SchemaType.PROTOBUF)
    data = Encoder(client, schema, "Refund").encode({"order_id": 7})
    decoder = Decoder(client)
    decoder.decode(data)
    assert pickle.loads(pickle.dumps(decoder)).decode(data) == {"order_id": 7}  # noqa: S301


def test_credentials_are_sent(registry: RunningRegistry) -> None:
    registry.state.authorization = f"Basic {base64.b64encode(b'alice:p@ss').decode()}"
    url = registry.url.removeprefix("http://")
    for address, properties in (
        (f"http://alice:p%40ss@{url}", {}),
        (registry.url, {"basic.auth.user.info": "alice:p@ss"}),
        (registry.url, {"schema.registry.basic.auth.user.info": "alice:p@ss"}),
        (
            registry.url,
            {
                "basic.auth.credentials.source": "SASL_INHERIT",
                "sasl.username": "alice",
                "sasl.password": "p@ss",
            },
        ),
        (f"http://127.0.0.1:1,{registry.url}", {"basic.auth.user.info": "alice:p@ss"}),
    ):
        settings = parse_settings(address, properties, lambda _: None)
        assert "p@ss" not in repr(settings)
        assert RegistryClient(settings).subjects() == []
    with pytest.raises(RegistryError, match="refuses access"):
        RegistryClient(parse_settings(registry.url, {}, lambda _: None)).subjects()
    registry.state.authorization = "Bearer t0k3n"
    token = parse_settings(registry.url, {"bearer.auth.token": "t0k3n"}, lambda _: None)
    assert RegistryClient(token).subjects() == []


@pytest.mark.parametrize(
    ("url", "properties", "reason"),
    [
        ("localhost:8081", {}, "not the URL of a registry"),
        ("http://h:port", {}, "is not a URL"),
        ("http://h", {"basic.auth.credentials.source": "NONE"}, "unknown basic.auth"),
        ("http://h", {"basic.auth.credentials.source": "USER_INFO"}, "USER:PASSWORD"),
        ("http://h", {"bearer.auth.credentials.source": "OAUTHBEARER"}, "not supported"),
        (",", {}, "is not a URL"),
    ],
)
def test_settings_that_cannot_be_used_are_usage_errors(
    url: str, properties: dict[str, str], reason: str
) -> None:
    with pytest.raises(CliError, match=reason) as error:
        parse_settings(url, properties, lambda _: None)
    assert error.value.status == 2


def test_registry_that_does_not_answer() -> None:
    client = RegistryClient(parse_settings("http://127.0.0.1:1", {}, lambda _: None))
    with pytest.raises(RegistryError, match=r"cannot reach the registry at http://127.0.0.1:1"):
        client.schema(1)
