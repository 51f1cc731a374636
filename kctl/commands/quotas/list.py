"""`kctl quotas list` and `resolve`."""

import typer

from kctl.admin.connection import ask
from kctl.admin.quotas import describe_quotas
from kctl.admin.users import list_credentials
from kctl.cli.arguments.quotas import (
    Client,
    ClientDefaults,
    EntityDefault,
    EntityNames,
    EntityOptions,
    EntityTypes,
    Ip,
    IpDefaults,
    User,
    UserDefaults,
)
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import KafkaText, Session, session_of
from kctl.model.quotas import EntityPart, PartType
from kctl.plans.quotas import resolve as resolved_quotas
from kctl.views.kafka_text.quotas import credential_lines, quota_lines
from kctl.views.quotas import COLUMNS, RESOLVED_COLUMNS, quota_rows, resolved_row


def list_quotas(
    ctx: typer.Context,
    user: User = None,
    user_defaults: UserDefaults = False,
    client: Client = None,
    client_defaults: ClientDefaults = False,
    ip: Ip = None,
    ip_defaults: IpDefaults = False,
    text_format: KafkaText = None,
    entity_types: EntityTypes = None,
    entity_names: EntityNames = None,
    entity_default: EntityDefault = False,
) -> None:
    """List the quotas of all entities, or of those with the given parts."""
    session = session_of(ctx)
    options = EntityOptions(
        user,
        user_defaults,
        client,
        client_defaults,
        ip,
        ip_defaults,
        entity_types,
        entity_names,
        entity_default,
    )
    parts = options.parts()
    if text_format:
        _show_as_kafka(session, parts)
        return
    entries = ask(session, lambda admin: describe_quotas(admin, parts))
    entries.sort(key=lambda entry: str(entry.entity))
    rows = [row for entry in entries for row in quota_rows(entry)]
    session.out.rows(rows, COLUMNS, name="entity")


def _show_as_kafka(session: Session, parts: list[EntityPart | PartType]) -> None:
    """What kafka-configs --describe prints: for users, their credentials too."""
    if not parts:
        raise CliError(
            "--format kafka requires an entity",
            "e.g. --entity-type users, as kafka-configs does",
            ExitStatus.USAGE,
        )
    entries = ask(session, lambda admin: describe_quotas(admin, parts, strict=True))
    session.out.lines(quota_lines(entries))
    if len(parts) > 1:
        return
    (part,) = parts
    if part is PartType.USER or (
        isinstance(part, EntityPart) and part.type is PartType.USER and part.name
    ):
        users = [part.name or ""] if isinstance(part, EntityPart) else []
        credentials = ask(session, lambda admin: list_credentials(admin, users))
        session.out.lines(credential_lines(credentials))


def resolve(ctx: typer.Context, user: User = None, client: Client = None, ip: Ip = None) -> None:
    """Show which quotas apply to a client, where they come from and what they override.

    Without --user, the user is ANONYMOUS, as on listeners without authentication.
    """
    session = session_of(ctx)
    if user is None and client is None and ip is None:
        raise CliError(
            "no client specified", "use --user, --client, --ip or some of them", ExitStatus.USAGE
        )
    entries = ask(session, describe_quotas)
    rows = [resolved_row(one) for one in resolved_quotas(entries, user, client, ip)]
    session.out.rows(rows, RESOLVED_COLUMNS, name="quota")
