"""Options of commands that use a schema registry."""

from typing import Annotated

import typer

from kctl.streaming.choices import RecordFormat

REGISTRY_PANEL = "Options of the schema registry"
_SCHEMA = "SUBJECT, SUBJECT:VERSION, id:N, or @FILE to register"


def _format(name: str) -> object:
    return typer.Option(
        f"--{name}-format",
        metavar="FORMAT",
        help=f"Format of the {name}s: bytes, avro, protobuf, json-schema, or auto (that of the "
        "schema).",
        rich_help_panel=REGISTRY_PANEL,
    )


def _schema(name: str) -> object:
    return typer.Option(
        f"--{name}-schema",
        metavar="SCHEMA",
        help=f"Schema of the {name}s: {_SCHEMA} (default: TOPIC-{name}).",
        rich_help_panel=REGISTRY_PANEL,
    )


def _message(name: str) -> object:
    return typer.Option(
        f"--{name}-message",
        metavar="NAME",
        help=f"Protobuf message of the {name}s, if the schema has several.",
        rich_help_panel=REGISTRY_PANEL,
    )


KeyFormat = Annotated[RecordFormat, _format("key")]
ValueFormat = Annotated[RecordFormat, _format("value")]
KeySchema = Annotated[str | None, _schema("key")]
ValueSchema = Annotated[str | None, _schema("value")]
KeyMessage = Annotated[str | None, _message("key")]
ValueMessage = Annotated[str | None, _message("value")]
RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        help="URL of the schema registry. [KCTL_SCHEMA_REGISTRY_URL]",
        rich_help_panel=REGISTRY_PANEL,
    ),
]
