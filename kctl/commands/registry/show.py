"""`kctl registry list`, `versions`, `show` and `diff`."""

import difflib
import json
from typing import Annotated

import typer

from kctl.cli.errors import ExitStatus, usage, usage_error
from kctl.cli.missing import no_such
from kctl.cli.options import session_of
from kctl.cli.output import OutputFormat
from kctl.commands.registry.options import RegistryUrl
from kctl.registry.client import RegistryClient, RegistryError
from kctl.registry.schemas import Schema, SchemaType
from kctl.registry.settings import required_settings
from kctl.registry.specs import SchemaSpec, parse_spec
from kctl.views.registry import SCHEMA_COLUMNS, SUBJECT_COLUMNS, VERSION_COLUMNS

Deleted = Annotated[bool, typer.Option("--deleted", help="Include deleted subjects and versions.")]
SpecArgument = Annotated[str, typer.Argument(metavar="SCHEMA", help="SUBJECT[:VERSION] or id:N.")]


def list_subjects(
    ctx: typer.Context, registry: RegistryUrl = None, deleted: Deleted = False
) -> None:
    """List the subjects, their latest versions and compatibility levels."""
    session = session_of(ctx)
    client = RegistryClient(required_settings(session, registry))
    subjects = client.subjects(deleted=deleted)
    if session.output is OutputFormat.NAME:
        session.out.lines(subjects)
        return
    session.out.rows(
        (_subject_row(client, one, deleted=deleted) for one in subjects),
        SUBJECT_COLUMNS,
        name="subject",
    )


def _subject_row(client: RegistryClient, subject: str, *, deleted: bool) -> dict[str, object]:
    versions = client.versions(subject, deleted=deleted)
    latest = client.version(subject, versions[-1], deleted=deleted)
    return {
        "subject": subject,
        "versions": len(versions),
        "latest": latest.version,
        "id": latest.schema.id,
        "type": latest.schema.type.value,
        "compatibility": client.compatibility(subject),
    }


def list_versions(
    ctx: typer.Context,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="The subject.")],
    registry: RegistryUrl = None,
    deleted: Deleted = False,
) -> None:
    """List the versions of a subject."""
    session = session_of(ctx)
    client = RegistryClient(required_settings(session, registry))
    rows = []
    for number in versions_of(client, subject, deleted=deleted):
        found = client.version(subject, number, deleted=deleted)
        rows.append({"subject": subject, "version": number} | _schema_fields(found.schema))
    session.out.rows(rows, VERSION_COLUMNS, name="version")


def versions_of(client: RegistryClient, subject: str, *, deleted: bool = False) -> list[int]:
    """The versions of a subject; CliError with similar names if there is no such subject."""
    try:
        return client.versions(subject, deleted=deleted)
    except RegistryError as error:
        if error.is_not_found:
            failure = no_such("subject", [subject], client.subjects())
            failure.hint = failure.hint.replace("kctl subjects list", "kctl registry list")
            raise failure from None
        raise


def _schema_fields(schema: Schema) -> dict[str, object]:
    return {
        "id": schema.id,
        "type": schema.type.value,
        "references": [f"{one.name}={one.subject}:{one.version}" for one in schema.references],
    }


def show_schema(ctx: typer.Context, schema: SpecArgument, registry: RegistryUrl = None) -> None:
    """Print a schema: Avro and JSON Schema indented, Protobuf as text.

    With -o json, the schema as stored, with its id, version and references.
    """
    session = session_of(ctx)
    spec = usage(parse_spec, schema)
    client = RegistryClient(required_settings(session, registry))
    found, version = _find(client, spec)
    if session.output.is_for_people:
        session.out.lines(_pretty(found))
        return
    row = {"subject": spec.subject, "version": version} | _schema_fields(found)
    session.out.record(row | {"schema": found.text}, SCHEMA_COLUMNS, name="id")


def _find(client: RegistryClient, spec: SchemaSpec) -> tuple[Schema, int | None]:
    if spec.file is not None:
        raise usage_error("a file is not a registered schema", "use SUBJECT[:VERSION] or id:N")
    if spec.id is not None:
        return client.schema(spec.id), None
    versions = versions_of(client, spec.subject or "")
    if isinstance(spec.version, int) and spec.version not in versions:
        known = ", ".join(map(str, versions))
        raise RegistryError(f"{spec.subject} has no version {spec.version}", f"it has {known}")
    found = client.version(spec.subject or "", spec.version)
    return found.schema, found.version


def _pretty(schema: Schema) -> list[str]:
    if schema.type is SchemaType.PROTOBUF:
        return schema.text.splitlines()
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False).splitlines()
    except ValueError:
        return schema.text.splitlines()


def diff_schemas(
    ctx: typer.Context,
    first: SpecArgument,
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="SCHEMA", help="Default: the latest version of the first.", show_default=False
        ),
    ] = None,
    registry: RegistryUrl = None,
) -> None:
    """Compare two schemas line by line; the exit status is 3 if they differ.

    A SUBJECT alone compares its last two versions.
    """
    session = session_of(ctx)
    client = RegistryClient(required_settings(session, registry))
    old, new = usage(parse_spec, first), usage(parse_spec, second) if second else None
    if new is None:
        if old.subject is None:
            raise usage_error("diff needs two schemas", "e.g. orders-value:1 orders-value:2")
        new = SchemaSpec(old.subject)
        versions = versions_of(client, old.subject)
        if isinstance(old.version, str):
            old = SchemaSpec(old.subject, versions[max(len(versions) - 2, 0)])
    before, after = (_pretty(_find(client, one)[0]) for one in (old, new))
    lines = list(difflib.unified_diff(before, after, str(old), str(new), lineterm=""))
    if not lines:
        session.out.note(f"{old} and {new} are equal")
        return
    session.out.lines(lines)
    raise typer.Exit(ExitStatus.FOUND)
