"""`kctl quotas set` and `delete`."""

from collections.abc import Mapping
from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.quotas import alter_quotas, describe_quotas
from kctl.cli.arguments.quotas import (
    AddConfig,
    Client,
    ClientDefaults,
    DeleteConfig,
    EntityDefault,
    EntityNames,
    EntityOptions,
    EntityTypes,
    Ip,
    IpDefaults,
    User,
    UserDefaults,
    parse_quotas,
    require_known,
)
from kctl.cli.confirmation import (
    DryRun,
    Plan,
    Yes,
    confirm_plan,
    refuse_if_read_only,
    show_dry_run,
)
from kctl.cli.errors import CliError
from kctl.cli.options import KafkaText, Session, session_of
from kctl.model.quotas import EntityPart, QuotaEntity, entity_of
from kctl.views.kafka_text.quotas import quota_completion_line
from kctl.views.outcomes import outcome_columns, raise_failures, show_outcomes
from kctl.views.quotas import CHANGE_COLUMNS, change_rows


def set_quotas(
    ctx: typer.Context,
    pairs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE…",
            help="producer_byte_rate, consumer_byte_rate (e.g. 10MB), request_percentage, "
            "controller_mutation_rate; for addresses connection_creation_rate.",
            show_default=False,
        ),
    ] = None,
    user: User = None,
    user_defaults: UserDefaults = False,
    client: Client = None,
    client_defaults: ClientDefaults = False,
    ip: Ip = None,
    ip_defaults: IpDefaults = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
    add_config: AddConfig = None,
    entity_types: EntityTypes = None,
    entity_names: EntityNames = None,
    entity_default: EntityDefault = False,
) -> None:
    """Set quotas of a user, a client id, both together, or an IP address."""
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
    parts = options.entity()
    quotas: dict[str, float | None] = {**parse_quotas(pairs, add_config, parts)}
    kafka = options.named_by_kafka() if text_format else None
    _change(session_of(ctx), parts, quotas, yes=yes, dry_run=dry_run, kafka=kafka)


def delete_quotas(
    ctx: typer.Context,
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY…", help="Quotas to delete (default: all quotas of the entity)."
        ),
    ] = None,
    user: User = None,
    user_defaults: UserDefaults = False,
    client: Client = None,
    client_defaults: ClientDefaults = False,
    ip: Ip = None,
    ip_defaults: IpDefaults = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
    delete_config: DeleteConfig = None,
    entity_types: EntityTypes = None,
    entity_names: EntityNames = None,
    entity_default: EntityDefault = False,
) -> None:
    """Delete quotas, so that more general ones apply again."""
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
    parts = options.entity()
    named = [*(keys or ()), *(key.strip() for key in (delete_config or "").split(",") if key)]
    require_known(named, parts)
    now = _now(session, parts)
    changes: dict[str, float | None] = dict.fromkeys(named or now)
    if unset := [key for key in changes if key not in now] or ([] if now else ["any quota"]):
        raise CliError(
            f"{entity_of(*parts)} does not have {', '.join(unset)}",
            "kctl quotas list shows the quotas",
        )
    kafka = options.named_by_kafka() if text_format else None
    _change(session, parts, changes, yes=yes, dry_run=dry_run, kafka=kafka)


def _now(session: Session, parts: list[EntityPart]) -> dict[str, float]:
    entries = ask(session, lambda admin: describe_quotas(admin, parts, strict=True))
    return next((entry.values for entry in entries), {})


def _change(
    session: Session,
    parts: list[EntityPart],
    changes: Mapping[str, float | None],
    *,
    yes: bool,
    dry_run: bool,
    kafka: EntityPart | None,
) -> None:
    """Change quotas; with `kafka`, print what kafka-configs prints, which names that part."""
    entity: QuotaEntity = entity_of(*parts)
    now = _now(session, parts)
    plan = Plan(
        f"Change the quotas of {entity}?",
        change_rows(entity, now, changes),
        CHANGE_COLUMNS,
        "quota",
        outcome_columns("entity"),
    )
    if dry_run:
        checked = ask(
            session, lambda admin: alter_quotas(admin, entity, changes, validate_only=True)
        )
        raise_failures([checked], "entity")
        show_dry_run(session, plan)
        return
    refuse_if_read_only(session, plan.results)
    if any(quota in now for quota in changes):
        confirm_plan(session, plan, yes=yes, dry_run=False)
    outcome = ask(
        session, lambda admin: alter_quotas(admin, entity, changes), check="kctl quotas list"
    )
    if kafka and not outcome.error:
        session.out.lines([quota_completion_line(kafka)])
    else:
        show_outcomes(session.out, [outcome], "entity", "changed")
