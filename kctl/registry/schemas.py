"""Schemas of a registry, and the errors about values."""

from dataclasses import dataclass
from enum import StrEnum


class SchemaType(StrEnum):
    """Schema types, as the registry's `schemaType` names them."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


@dataclass(frozen=True)
class Reference:
    """A schema that another one imports: `name` is what the importing schema calls it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """A schema; `id` is None until it is registered."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    id: int | None = None


@dataclass(frozen=True)
class SubjectVersion:
    """A version of a subject."""

    subject: str
    version: int
    schema: Schema


class UndecodableValue(ValueError):
    """A value that cannot be decoded; the message says why."""


class UnencodableValue(ValueError):
    """A document that does not fit its schema; the message says why."""
