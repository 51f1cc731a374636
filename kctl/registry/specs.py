"""Schemas named on the command line: SUBJECT, SUBJECT:VERSION, id:N or @FILE."""

from dataclasses import dataclass
from pathlib import Path, PurePath

from kctl.cli.arguments.files import read_text
from kctl.cli.errors import usage_error
from kctl.registry.client import LATEST, RegistryClient
from kctl.registry.schemas import Reference, Schema, SchemaType

_SUFFIXES = {
    ".avsc": SchemaType.AVRO,
    ".proto": SchemaType.PROTOBUF,
    ".json": SchemaType.JSON,
}


@dataclass(frozen=True)
class SchemaSpec:
    """A schema to look up; `file` is one that may not be registered yet."""

    subject: str | None = None
    version: int | str = LATEST
    id: int | None = None
    file: Path | None = None

    def __str__(self) -> str:
        if self.id is not None:
            return f"id:{self.id}"
        return f"@{self.file}" if self.file else f"{self.subject}:{self.version}"

    def find(self, client: RegistryClient) -> Schema:
        """The registered schema."""
        if self.id is not None:
            return client.schema(self.id)
        return client.version(self.subject or "", self.version).schema


def parse_spec(text: str) -> SchemaSpec:
    """Parse a schema; ValueError if it is malformed."""
    if text.startswith("@"):
        return SchemaSpec(file=Path(text[1:]))
    head, colon, tail = text.rpartition(":")
    if colon and tail == LATEST:
        return SchemaSpec(head)
    if colon and tail.isdecimal():
        return SchemaSpec(id=int(tail)) if head == "id" else SchemaSpec(head, int(tail))
    if not text or head == "id":
        raise ValueError(f"{text!r} is not a schema: use SUBJECT, SUBJECT:VERSION, id:N or @FILE")
    return SchemaSpec(text)


def parse_reference(text: str) -> Reference:
    """`NAME=SUBJECT:VERSION`; ValueError if it is malformed."""
    name, _, target = text.partition("=")
    subject, _, version = target.rpartition(":")
    if not (name and subject and version.isdecimal()):
        raise ValueError(f"{text!r} is not a reference: use NAME=SUBJECT:VERSION")
    return Reference(name, subject, int(version))


def read_schema(
    path: Path, kind: SchemaType | None = None, references: tuple[Reference, ...] = ()
) -> Schema:
    """The schema in a file; its type is `kind`, else that of the file name."""
    found = kind or _SUFFIXES.get(PurePath(path).suffix)
    if found is None:
        raise usage_error(
            f"the schema type of {path} is unknown",
            "use --type, or a file name that ends with .avsc, .proto or .json",
        )
    return Schema(found, read_text(path), references)
