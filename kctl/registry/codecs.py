"""Decoder and encoder of values with a schema of the registry."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from kctl.cli.errors import CliError
from kctl.registry.avro import AvroCodec
from kctl.registry.client import RegistryClient
from kctl.registry.json_schema import JsonCodec
from kctl.registry.protobuf import ProtobufCodec
from kctl.registry.schemas import Schema, SchemaType, UndecodableValue
from kctl.registry.wire import join_value, split_value


class Codec(Protocol):
    """What every codec can do."""

    def decode(self, payload: bytes) -> Any:
        """The value as Python objects."""

    def document(self, payload: bytes) -> Any:
        """The value as JSON can hold it."""


class Decoder:
    """Decodes values by the schema id that each of them carries.

    `reader` is an Avro schema to which values of other Avro schemas are resolved, so that all have
    the same fields; values of other types are not affected. UndecodableValue for values without
    an id, with an unknown id, or that do not fit; RegistryError if the registry does not answer.
    """

    def __init__(
        self,
        client: RegistryClient,
        *,
        expected: SchemaType | None = None,
        reader: Schema | None = None,
    ) -> None:
        self._client = client
        self._expected = expected
        self._reader = reader
        self._reader_codec: AvroCodec | None = None
        self._codecs: dict[int, Codec | UndecodableValue] = {}

    def __getstate__(self) -> dict[str, object]:
        # Parsed schemas are derived; descriptors of Protobuf cannot be pickled.
        return {**self.__dict__, "_codecs": {}, "_reader_codec": None}

    def schema(self, data: bytes) -> Schema:
        """The schema of a value."""
        return self._client.schema(split_value(data)[0])

    def decode(self, data: bytes) -> Any:
        """The value as Python objects: datetime, Decimal, bytes; records and messages as dict."""
        codec, payload = self._codec(data)
        if isinstance(codec, AvroCodec):
            return codec.decode(payload, self._avro_reader())
        return codec.decode(payload)

    def document(self, data: bytes) -> Any:
        """The value as JSON can hold it."""
        codec, payload = self._codec(data)
        if isinstance(codec, AvroCodec):
            return codec.document(payload, self._avro_reader())
        return codec.document(payload)

    def _codec(self, data: bytes) -> tuple[Codec, bytes]:
        schema_id, payload = split_value(data)
        if schema_id not in self._codecs:
            self._codecs[schema_id] = self._make(schema_id)
        found = self._codecs[schema_id]
        if isinstance(found, UndecodableValue):
            raise found
        return found, payload

    def _make(self, schema_id: int) -> Codec | UndecodableValue:
        try:
            schema = self._client.schema(schema_id)
            if self._expected not in (None, schema.type):
                return UndecodableValue(f"schema {schema_id} has the type {schema.type}")
            return make_codec(self._client, schema)
        except UndecodableValue as error:
            return UndecodableValue(f"schema {schema_id}: {error}")
        except CliError as error:
            if getattr(error, "is_not_found", False):
                return UndecodableValue(f"the registry has no schema {schema_id}")
            raise

    def _avro_reader(self) -> AvroCodec | None:
        if self._reader is not None and self._reader_codec is None:
            imported = self._client.references_of(self._reader).values()
            self._reader_codec = AvroCodec(self._reader, imported)
        return self._reader_codec


class Encoder:
    """Encodes documents with one registered schema; `message` selects a Protobuf message."""

    def __init__(self, client: RegistryClient, schema: Schema, message: str | None = None) -> None:
        if schema.id is None:
            raise ValueError("the schema is not registered")
        self._id = schema.id
        self._message = message
        self._codec = make_codec(client, schema)
        if isinstance(self._codec, JsonCodec):
            with _extra_needed(schema):
                _ = self._codec.validator  # a missing package is reported before anything is sent

    def encode(self, document: Any) -> bytes:
        """The bytes of a value; UnencodableValue if the document does not fit the schema."""
        if isinstance(self._codec, ProtobufCodec):
            return join_value(self._id, self._codec.encode(document, self._message))
        return join_value(self._id, self._codec.encode(document))


def make_codec(client: RegistryClient, schema: Schema) -> AvroCodec | ProtobufCodec | JsonCodec:
    """The codec of a schema; CliError if the extra is not installed."""
    imported = client.references_of(schema)
    with _extra_needed(schema):
        match schema.type:
            case SchemaType.AVRO:
                return AvroCodec(schema, imported.values())
            case SchemaType.PROTOBUF:
                return ProtobufCodec(schema, imported)
            case SchemaType.JSON:
                return JsonCodec(schema, imported)


@contextmanager
def _extra_needed(schema: Schema) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise CliError(
            f"{schema.type} needs the Python package {error.name}",
            "pip install 'kctl[registry]'",
        ) from error
