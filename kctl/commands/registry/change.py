"""`kctl registry check`, `register`, `delete` and `compatibility`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan, refuse_if_read_only
from kctl.cli.errors import CliError, ExitStatus, usage, usage_error
from kctl.cli.options import session_of
from kctl.commands.registry.options import RegistryUrl
from kctl.commands.registry.show import versions_of
from kctl.registry.client import LATEST, RegistryClient, RegistryError
from kctl.registry.schemas import Schema, SchemaType
from kctl.registry.settings import required_settings
from kctl.registry.specs import parse_reference, parse_spec, read_schema
from kctl.views.registry import CHECK_COLUMNS, DELETION_COLUMNS, VERSION_COLUMNS


class SchemaKind(StrEnum):
    """Values of --type."""

    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON = "json"


class Compatibility(StrEnum):
    """Compatibility levels."""

    NONE = "none"
    BACKWARD = "backward"
    BACKWARD_TRANSITIVE = "backward_transitive"
    FORWARD = "forward"
    FORWARD_TRANSITIVE = "forward_transitive"
    FULL = "full"
    FULL_TRANSITIVE = "full_transitive"


Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="The subject.")]
SchemaFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="File with the schema; - is stdin.")
]
Kind = Annotated[
    SchemaKind | None,
    typer.Option("--type", help="Schema type (default: from the name of the file)."),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="NAME=SUBJECT:VERSION",
        help="Schema that the file imports under this name; can be repeated.",
    ),
]


def _read(path: Path, kind: SchemaKind | None, references: list[str] | None) -> Schema:
    found = tuple(usage(parse_reference, one) for one in references or [])
    return read_schema(path, SchemaType[kind.name] if kind else None, found)


def check_schema(
    ctx: typer.Context,
    subject: Subject,
    file: SchemaFile,
    kind: Kind = None,
    references: References = None,
    version: Annotated[
        int | None, typer.Option(min=1, help="Version to compare with (default: the latest).")
    ] = None,
    registry: RegistryUrl = None,
) -> None:
    """Check whether a schema is compatible with a subject; nothing is changed.

    The exit status is 3 if it is not.
    """
    session = session_of(ctx)
    schema = _read(file, kind, references)
    client = RegistryClient(required_settings(session, registry))
    versions_of(client, subject)
    messages = client.incompatibilities(subject, schema, version or LATEST)
    row = {"subject": subject, "compatible": messages is None, "messages": messages or []}
    session.out.record(row, CHECK_COLUMNS, name="compatible")
    if messages is not None:
        raise typer.Exit(ExitStatus.FOUND)


def register_schema(
    ctx: typer.Context,
    subject: Subject,
    file: SchemaFile,
    kind: Kind = None,
    references: References = None,
    registry: RegistryUrl = None,
    dry_run: DryRun = False,
) -> None:
    """Register a schema as the next version of a subject, which is created if it is new.

    A schema that the subject has already is not registered again.
    """
    session = session_of(ctx)
    schema = _read(file, kind, references)
    client = RegistryClient(required_settings(session, registry))
    known = client.find(subject, schema)
    if known is None and not dry_run:
        refuse_if_read_only(session)
        client.register(subject, schema)
        known = client.find(subject, schema)
    row = {
        "subject": subject,
        "version": known.version if known else None,
        "id": known.schema.id if known else None,
        "type": schema.type.value,
        "references": references or [],
    }
    session.out.record(row, VERSION_COLUMNS, name="id")
    if dry_run:
        session.out.note("dry run: nothing was changed")


def delete_schema(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="SUBJECT[:VERSION]", help="Subject, or one of its versions.")
    ],
    permanent: Annotated[
        bool,
        typer.Option(
            "--permanent",
            help="Remove versions that are deleted already: records with their ids become "
            "undecodable.",
        ),
    ] = False,
    registry: RegistryUrl = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete a subject or one of its versions.

    Deleted versions are not listed any more, but their ids can still be decoded.
    """
    session = session_of(ctx)
    spec = usage(parse_spec, target)
    if spec.subject is None:
        raise usage_error(f"{target!r} is not a subject", "e.g. orders-value, or orders-value:3")
    client = RegistryClient(required_settings(session, registry))
    versions = versions_of(client, spec.subject, deleted=permanent)
    number = spec.version if isinstance(spec.version, int) else None
    if number is not None and number not in versions:
        known = ", ".join(map(str, versions))
        raise RegistryError(f"{spec.subject} has no version {number}", f"it has {known}")
    rows = [
        {"subject": spec.subject, "version": one, "permanent": permanent}
        for one in versions
        if number in (None, one)
    ]
    what = spec.subject if number is None else f"version {number} of {spec.subject}"
    plan = Plan(f"Delete {what}?", rows, DELETION_COLUMNS, "version", ())
    if confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        client.delete(spec.subject, number, permanent=permanent)
        session.out.note(f"{what} deleted")


def compatibility(
    ctx: typer.Context,
    subject: Annotated[
        str | None,
        typer.Argument(metavar="SUBJECT", help="Default: the global level.", show_default=False),
    ] = None,
    level: Annotated[
        Compatibility | None,
        typer.Option(
            "--set",
            metavar="LEVEL",
            help="Set this level: none, backward, forward or full; with _transitive for all "
            "versions.",
        ),
    ] = None,
    registry: RegistryUrl = None,
    dry_run: DryRun = False,
) -> None:
    """Show or set the compatibility level of a subject, or the global one."""
    session = session_of(ctx)
    client = RegistryClient(required_settings(session, registry))
    before = client.compatibility(subject)
    if level is None:
        session.out.value("compatibility", before)
        return
    if dry_run:
        session.out.note(f"{before} → {level.upper()}; dry run: nothing was changed")
        return
    refuse_if_read_only(session)
    client.set_compatibility(level.upper(), subject)
    after = client.compatibility(subject)
    if after != level.upper():
        raise CliError(f"the compatibility level is still {after}")
    session.out.note(f"compatibility level of {subject or 'the registry'}: {after}")
