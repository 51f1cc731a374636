"""Keys and values with schemas of a registry: decoded by `consume`, encoded by `produce`.

Records keep bytes as keys and values: a decoded one is JSON text.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.errors import CliError, usage, usage_error
from kctl.cli.options import Session
from kctl.model.records import TopicRecord
from kctl.registry.client import RegistryClient
from kctl.registry.codecs import Decoder, Encoder
from kctl.registry.schemas import SchemaType, UndecodableValue, UnencodableValue
from kctl.registry.settings import required_settings
from kctl.registry.specs import SchemaSpec, parse_spec, read_schema
from kctl.registry.wire import split_value
from kctl.streaming.choices import RecordFormat

TYPES = {
    RecordFormat.AVRO: SchemaType.AVRO,
    RecordFormat.PROTOBUF: SchemaType.PROTOBUF,
    RecordFormat.JSON_SCHEMA: SchemaType.JSON,
}


@dataclass(frozen=True)
class DecodedRecord(TopicRecord):
    """A record whose key or value is JSON text; the schema id is None for one left as it was."""

    key_schema_id: int | None = None
    value_schema_id: int | None = None


Convert = Callable[[TopicRecord], TopicRecord]


def make_decoder(
    session: Session, url: str | None, key: RecordFormat, value: RecordFormat
) -> Convert:
    """A function that decodes records; the identity if both formats are bytes.

    CliError for a value that is not of its format; with `auto` it is left as it is.
    """
    if key is value is RecordFormat.BYTES:
        return lambda record: record
    client = RegistryClient(required_settings(session, url))
    decoders = {
        name: (Decoder(client, expected=TYPES.get(form)), form is RecordFormat.AUTO)
        for name, form in (("key", key), ("value", value))
        if form is not RecordFormat.BYTES
    }

    def decode(record: TopicRecord) -> TopicRecord:
        found: dict[str, Any] = {}
        for name, (decoder, is_lenient) in decoders.items():
            data = getattr(record, name)
            if data is None:
                continue
            try:
                document = decoder.document(data)
            except UndecodableValue as error:
                if is_lenient:
                    continue
                raise _undecodable(record, name, error) from error
            found[name] = json.dumps(document, ensure_ascii=False).encode()
            found[f"{name}_schema_id"] = split_value(data)[0]
        fields = {name: getattr(record, name) for name in asdict(TopicRecord())}
        return DecodedRecord(**fields | found)

    return decode


def _undecodable(record: TopicRecord, name: str, error: UndecodableValue) -> CliError:
    place = f"{record.topic}-{record.partition}@{record.offset}"
    return CliError(
        f"cannot decode the {name} of {place}: {error}",
        f"--{name}-format auto shows such records as they are",
    )


@dataclass(frozen=True)
class Encoding:
    """How keys or values are encoded."""

    form: RecordFormat = RecordFormat.BYTES
    schema: str | None = None
    """SUBJECT, SUBJECT:VERSION, id:N or @FILE; None: the latest version of the topic's subject."""
    message: str | None = None
    """The Protobuf message, if the schema has several."""


def make_encoder(
    session: Session,
    url: str | None,
    topic: str,
    encodings: dict[str, Encoding],
    *,
    dry_run: bool = False,
) -> Convert:
    """A function that encodes the JSON text of records; `encodings` are those of key and value.

    A schema of a file is registered first, except in a dry run. The function raises ValueError for
    a document that does not fit its schema.
    """
    for name, encoding in encodings.items():
        if encoding.form is RecordFormat.BYTES and (encoding.schema or encoding.message):
            raise usage_error(
                f"--{name}-schema and --{name}-message need --{name}-format", "e.g. avro, or auto"
            )
    used = {name: one for name, one in encodings.items() if one.form is not RecordFormat.BYTES}
    if not used:
        return lambda record: record
    client = RegistryClient(required_settings(session, url))
    encoders = {
        name: _encoder(session, client, f"{topic}-{name}", encoding, dry_run=dry_run)
        for name, encoding in used.items()
    }

    def encode(record: TopicRecord) -> TopicRecord:
        found: dict[str, Any] = {}
        for name, encoder in encoders.items():
            data = getattr(record, name)
            if data is not None:
                try:
                    found[name] = _encoded(encoder, data)
                except UnencodableValue as error:
                    raise ValueError(f"{name}: {error}") from error
        return replace(record, **found)

    return encode


def _encoder(
    session: Session, client: RegistryClient, subject: str, encoding: Encoding, *, dry_run: bool
) -> Encoder:
    spec = usage(parse_spec, encoding.schema) if encoding.schema else SchemaSpec(subject)
    if spec.file is not None:
        schema = read_schema(spec.file, TYPES.get(encoding.form))
        if known := client.find(subject, schema):
            schema = known.schema
        elif dry_run:
            schema = replace(schema, id=0)
        else:
            refuse_if_read_only(session)
            schema = client.register(subject, schema)
    else:
        schema = spec.find(client)
    if TYPES.get(encoding.form) not in (None, schema.type):
        raise CliError(
            f"the schema {spec} has the type {schema.type}",
            f"--{subject.rpartition('-')[2]}-format auto uses the type of the schema",
        )
    try:
        return Encoder(client, schema, encoding.message)
    except (UndecodableValue, UnencodableValue) as error:
        raise CliError(f"cannot use the schema {spec}: {error}") from error


def _encoded(encoder: Encoder, data: bytes) -> bytes:
    """Encode JSON text; text that is not JSON, or does not fit, may be a string itself."""
    try:
        return encoder.encode(json.loads(data))
    except (ValueError, RecursionError) as error:
        try:
            return encoder.encode(data.decode())
        except ValueError:
            if isinstance(error, UnencodableValue):
                raise error from None
            raise UnencodableValue(f"it is neither JSON nor a string: {error}") from None
