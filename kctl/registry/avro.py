"""Avro payloads, with fastavro."""

import io
import json
from collections.abc import Iterable
from typing import Any

from kctl.registry.avro_documents import AvroDocuments
from kctl.registry.schemas import Schema, UndecodableValue, UnencodableValue

_DECODING_ERRORS = (ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError)
"""Errors of fastavro for payloads that do not have the schema."""


class AvroCodec:
    """Decodes and encodes payloads of one Avro schema.

    As in Java's serializer, the payload of the schema `"bytes"` is the bytes without a length.
    """

    def __init__(self, schema: Schema, imported: Iterable[Schema] = ()) -> None:
        from fastavro.schema import SchemaParseException, parse_schema

        named: dict[str, Any] = {}
        try:
            for one in imported:
                parse_schema(json.loads(one.text), named_schemas=named)
            self.parsed: Any = parse_schema(json.loads(schema.text), named_schemas=named)
        except (SchemaParseException, *_DECODING_ERRORS) as error:
            raise UndecodableValue(f"its Avro schema is not valid: {_reason(error)}") from error
        self._is_bytes = self.parsed == "bytes" or self.parsed == {"type": "bytes"}
        self._documents = AvroDocuments(named)

    def decode(self, payload: bytes, reader: "AvroCodec | None" = None) -> Any:
        """The value; with `reader`, resolved to that schema as Avro defines it."""
        return self._read(payload, None if reader is None else reader.parsed, named=False)

    def document(self, payload: bytes, reader: "AvroCodec | None" = None) -> Any:
        """The value as JSON can hold it; see `avro_documents`."""
        target = reader or self
        value = self._read(payload, None if reader is None else reader.parsed, named=True)
        return target._documents.to_document(target.parsed, value)

    def encode(self, document: Any) -> bytes:
        """The payload of a document; UnencodableValue if it does not fit the schema."""
        from fastavro import schemaless_writer

        value = self._documents.from_document(self.parsed, document)
        if self._is_bytes:
            return bytes(value)
        stream = io.BytesIO()
        try:
            schemaless_writer(stream, self.parsed, value)
        except _DECODING_ERRORS as error:
            raise UnencodableValue(_reason(error)) from error
        return stream.getvalue()

    def _read(self, payload: bytes, reader: Any, *, named: bool) -> Any:
        from fastavro import schemaless_reader
        from fastavro.read import SchemaResolutionError

        if self._is_bytes:
            return payload
        stream = io.BytesIO(payload)
        try:
            value = schemaless_reader(stream, self.parsed, reader, return_named_type=named)
        except SchemaResolutionError as error:
            raise UndecodableValue(f"it does not fit the reader schema: {error}") from error
        except _DECODING_ERRORS as error:
            raise UndecodableValue(f"it does not have its schema: {_reason(error)}") from error
        if rest := len(payload) - stream.tell():
            raise UndecodableValue(f"it does not have its schema: {rest} bytes are left over")
        return value


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
