"""Values with schemas of a registry → Arrow structs (`--value registry`).

All values become one struct type. For Avro, each value is resolved from its own (writer) schema to
the reader schema of the export, as Avro defines it; for Protobuf and JSON Schema, fields that the
type lacks are a reason to set the record aside, as with JSON. Maps become lists of key and value.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from kctl.cli.errors import CliError
from kctl.registry.client import RegistryClient
from kctl.registry.codecs import Decoder, make_codec
from kctl.registry.protobuf import ProtobufCodec
from kctl.registry.schemas import Schema, SchemaType, UndecodableValue
from kctl.registry.settings import RegistrySettings
from kctl.registry.wire import split_value
from kctl.spark.decoding.json_values import misfit
from kctl.spark.decoding.schema import without_nulls
from kctl.spark.decoding.typed_values import converted

_AVRO: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "enum": pa.string(),
    "null": pa.null(),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us", tz="UTC"),
    "local-timestamp-micros": pa.timestamp("us", tz="UTC"),
    "time-millis": pa.string(),
    "time-micros": pa.string(),
    "uuid": pa.string(),
}
# By CPPTYPE_… of Protobuf's descriptors; unsigned numbers need a wider type.
_PROTOBUF: Final = {
    1: pa.int32(),
    2: pa.int64(),
    3: pa.int64(),
    4: pa.decimal128(20, 0),
    5: pa.float64(),
    6: pa.float32(),
    7: pa.bool_(),
    8: pa.string(),
    9: pa.string(),
}
_PROTOBUF_BYTES: Final = 12
_decoders: dict[tuple[tuple[str, ...], int], Decoder] = {}
"""Of this process, so that a task fetches each schema once."""


class RegistryValues:
    """Decodes columns of values; `reader_id` is the Avro schema of the export, or 0."""

    def __init__(self, settings: RegistrySettings, reader_id: int) -> None:
        key = (settings.urls, reader_id)
        if key not in _decoders:
            client = RegistryClient(settings)
            reader = client.schema(reader_id) if reader_id else None
            is_avro = reader is not None and reader.type is SchemaType.AVRO
            _decoders[key] = Decoder(client, reader=reader if is_avro else None)
        self._decoder = _decoders[key]

    def to_structs(
        self, raw: pa.Array, kind: pa.DataType, *, keep_unknown: bool
    ) -> tuple[pa.Array, pa.Array | None]:
        """(structs, reasons), as `json_values.to_structs`."""
        structs: list[Any] = []
        reasons: list[str | None] = []
        for value in raw.to_pylist():
            found, reason = None, None
            if value is not None:
                found, reason = self._one(value, kind, keep_unknown)
            structs.append(found)
            reasons.append(reason)
        return pa.array(structs, kind), pa.array(reasons, pa.string())

    def _one(
        self, value: bytes, kind: pa.DataType, keep_unknown: bool
    ) -> tuple[dict[str, Any] | None, str | None]:
        try:
            found = shaped(self._decoder.decode(value), kind)
            reason = misfit(found, kind, keep_unknown)
        except UndecodableValue as error:
            return None, str(error)
        except RecursionError:
            return None, "nested too deeply"
        return (None, reason) if reason else (converted(found, kind), None)


def shaped(value: Any, kind: pa.DataType) -> Any:
    """A decoded value in the form of a type: maps as lists, union values without the branch
    name."""
    if isinstance(value, tuple):  # fastavro: (name of the branch, value)
        value = value[1]
    if pa.types.is_struct(kind) and isinstance(value, dict):
        kinds = {field.name: field.type for field in kind}
        return {
            name: shaped(each, kinds[name]) if name in kinds else each
            for name, each in value.items()
        }
    if pa.types.is_list(kind) and isinstance(value, dict):
        value = [{"key": key, "value": each} for key, each in value.items()]
    if pa.types.is_list(kind) and isinstance(value, list):
        return [shaped(each, kind.value_type) for each in value]
    if pa.types.is_string(kind) and (isinstance(value, UUID) or hasattr(value, "isoformat")):
        return str(value)
    return value


# --- the type of a table -----------------------------------------------------------------------


def table_type(
    settings: RegistrySettings, topics: Iterable[str], sample: Iterable[bytes | None]
) -> tuple[int, pa.DataType]:
    """(id of the schema, struct type) of a table: the latest schema of the topic's subject, else
    the one with the largest id in a sample. CliError if no schema is found, or it is not a
    record."""
    client = RegistryClient(settings)
    values = [value for value in sample if value]
    schema = _subject_schema(client, list(topics)) or _newest(client, values)
    if schema is None or schema.id is None:
        raise CliError(
            "no sampled value has a schema in the registry", "use --value json or string"
        )
    kind = _struct_of(client, schema, values)
    if not pa.types.is_struct(kind) or not kind.num_fields:
        raise CliError(f"schema {schema.id} is not a record with fields", "use --value binary")
    return schema.id, without_nulls(kind)


def _subject_schema(client: RegistryClient, topics: list[str]) -> Schema | None:
    if len(topics) != 1:
        return None
    try:
        return client.version(f"{topics[0]}-value").schema
    except CliError as error:
        if getattr(error, "is_not_found", False):
            return None
        raise


def _newest(client: RegistryClient, values: Iterable[bytes]) -> Schema | None:
    ids = set()
    for value in values:
        try:
            ids.add(split_value(value)[0])
        except UndecodableValue:
            continue
    for each in sorted(ids, reverse=True):
        try:
            return client.schema(each)
        except CliError as error:
            if not getattr(error, "is_not_found", False):
                raise
    return None


def _struct_of(client: RegistryClient, schema: Schema, values: list[bytes]) -> pa.DataType:
    if schema.type is SchemaType.AVRO:
        named: dict[str, Any] = {}
        for each in client.references_of(schema).values():
            _collect(json.loads(each.text), named, "")
        document = json.loads(schema.text)
        _collect(document, named, "")
        return _avro_type(document, named, "", ())
    codec = make_codec(client, schema)
    decoded = []
    for value in values:
        try:
            schema_id, payload = split_value(value)
            if schema_id != schema.id:
                continue
            if isinstance(codec, ProtobufCodec):
                return _protobuf_type(codec.descriptor(payload), ())
            decoded.append(codec.decode(payload))
        except UndecodableValue:
            continue
    try:
        return pa.infer_type([each for each in decoded if isinstance(each, dict)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise CliError(f"the values of schema {schema.id} have no common type: {error}") from error


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name = str(schema["name"])
    space = str(schema.get("namespace", space))
    return name if "." in name or not space else f"{space}.{name}"


def _collect(schema: Any, named: dict[str, Any], space: str) -> None:
    """Find the named types of a schema."""
    if isinstance(schema, list):
        for each in schema:
            _collect(each, named, space)
    elif isinstance(schema, dict):
        if "name" in schema and schema.get("type") in ("record", "enum", "fixed", "error"):
            full = _full_name(schema, space)
            named[full] = {**schema, "name": full}
            space = full.rpartition(".")[0]
        for field in schema.get("fields", ()):
            _collect(field["type"], named, space)
        for inner in ("items", "values", "type"):
            if isinstance(schema.get(inner), dict | list):
                _collect(schema[inner], named, space)


def _avro_type(
    schema: Any, named: Mapping[str, Any], space: str, outer: tuple[str, ...]
) -> pa.DataType:
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) > 1:
            raise CliError(
                f"{'.'.join(outer) or 'the schema'}: a union of several types has no column type",
                "use --value binary, or another schema",
            )
        return _avro_type(others[0], named, space, outer) if others else pa.null()
    if isinstance(schema, str):
        if schema in _AVRO:
            return _AVRO[schema]
        found = named.get(schema) or named.get(f"{space}.{schema}")
        if found is None:
            raise CliError(f"the Avro type {schema} is not defined")
        return _avro_type(found, named, space, outer)
    return _avro_complex(schema, named, space, outer)


def _avro_complex(
    schema: Mapping[str, Any], named: Mapping[str, Any], space: str, outer: tuple[str, ...]
) -> pa.DataType:
    kind = schema["type"]
    logical = schema.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if kind == "array":
        return pa.list_(_avro_type(schema["items"], named, space, outer))
    if kind == "map":
        value = _avro_type(schema["values"], named, space, outer)
        return pa.list_(pa.struct([("key", pa.string()), ("value", value)]))
    if kind in ("record", "error"):
        full = _full_name(schema, space)
        if full in outer:
            raise CliError(
                f"{full} is recursive, which a table cannot represent", "use --value binary"
            )
        inner = full.rpartition(".")[0]
        return pa.struct(
            [
                (field["name"], _avro_type(field["type"], named, inner, (*outer, full)))
                for field in schema["fields"]
            ]
        )
    return _avro_type(kind, named, space, outer)


def _protobuf_type(descriptor: Any, outer: tuple[str, ...]) -> pa.DataType:
    if descriptor.full_name in outer:
        raise CliError(
            f"{descriptor.full_name} is recursive, which a table cannot represent",
            "use --value binary",
        )
    path = (*outer, descriptor.full_name)
    return pa.struct([(field.name, _protobuf_field(field, path)) for field in descriptor.fields])


def _protobuf_field(field: Any, outer: tuple[str, ...]) -> pa.DataType:
    if field.message_type is not None:
        inner = _protobuf_type(field.message_type, outer)  # a map entry has key and value
    else:
        inner = pa.binary() if field.type == _PROTOBUF_BYTES else _PROTOBUF[field.cpp_type]
    return pa.list_(inner) if field.is_repeated else inner
