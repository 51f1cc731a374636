"""`kctl acls explain` and `audit`."""

from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.acls import describe_acls
from kctl.admin.authorizer_settings import ALLOW_EVERYONE, SUPER_USERS, shown_settings
from kctl.admin.connection import ask
from kctl.admin.topics import find_topics
from kctl.cli.arguments.acls import (
    RESOURCE_HELP,
    parse_operation,
    parse_principal,
    parse_resource,
    require_supported,
)
from kctl.cli.errors import ExitStatus
from kctl.cli.options import session_of
from kctl.cli.output import OutputFormat
from kctl.model.acl_decisions import AuthorizerSettings, Request
from kctl.model.acls import Acl, AclFilter
from kctl.plans.acls.audit import audit as find_problems
from kctl.plans.acls.explain import decide, remedies
from kctl.views.acls import (
    DECISION_COLUMNS,
    FINDING_COLUMNS,
    decision_row,
    finding_row,
    remedy_text,
)


def explain(
    ctx: typer.Context,
    principal: Annotated[
        str, typer.Argument(metavar="PRINCIPAL", help="User:alice, or alice for short.")
    ],
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="read, write, describe, …")],
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help=RESOURCE_HELP)],
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="IP address of the client."),
    ] = None,
    super_users: Annotated[
        list[str] | None,
        typer.Option(
            "--super-user",
            metavar="PRINCIPAL",
            help="A principal of super.users, which Apache Kafka does not show; can be repeated.",
        ),
    ] = None,
    allow_everyone: Annotated[
        bool | None,
        typer.Option(
            "--allow-everyone/--no-allow-everyone",
            help=f"The value of {ALLOW_EVERYONE}, which Apache Kafka does not show.",
            show_default=False,
        ),
    ] = None,
) -> ExitStatus:
    """Explain which ACL allows or denies a request, and what would change that.

    Status 3 if it is denied. Without --host, only ACLs for all hosts apply.
    """
    session = session_of(ctx)
    wanted = parse_resource(resource)
    asked = parse_operation(operation)
    require_supported(wanted.type, [asked])
    request = Request(parse_principal(principal), asked, wanted, host)
    acls = ask(session, lambda client: describe_acls(client, AclFilter()))
    shown = ask(session, shown_settings)
    settings = AuthorizerSettings(
        frozenset(map(parse_principal, super_users or shown.super_users)),
        shown.allow_everyone if allow_everyone is None else allow_everyone,
    )
    decision = decide(acls, request, settings)
    steps = remedies(decision)
    session.out.record(decision_row(decision, steps), DECISION_COLUMNS, name="allowed")
    if session.output in (OutputFormat.TABLE, OutputFormat.WIDE):
        rest = (decision.allowing if decision.allowed else decision.denying)[1:]
        also = [f"  {acl}" for acl in rest]
        session.out.lines([*(["", "also:", *also] if also else [])])
        heading = "to deny it:" if decision.allowed else "to allow it:"
        session.out.lines(["", heading, *(f"  {remedy_text(step)}" for step in steps)])
    given = {SUPER_USERS: super_users is not None, ALLOW_EVERYONE: allow_everyone is not None}
    if unseen := [name for name in shown.hidden if not given[name]]:
        options = "--super-user or --allow-everyone"
        session.out.note(f"the brokers do not reveal {' and '.join(unseen)}: specify {options}")
    return ExitStatus.OK if decision.allowed else ExitStatus.FOUND


def audit(ctx: typer.Context) -> ExitStatus:
    """Find ACLs that have no effect, and ACLs that grant more than intended.

    Findings: deny-dominated, shadowed, duplicate, wildcard, missing-topic, invalid-host,
    unused-operation. Status 3 if there are any.
    """
    session = session_of(ctx)

    async def query(client: Client) -> tuple[list[Acl], list[str]]:
        topics = [topic.name for topic in await find_topics(client)]
        return await describe_acls(client, AclFilter()), topics

    acls, topics = ask(session, query)
    findings = find_problems(acls, topics)
    session.out.rows(map(finding_row, findings), FINDING_COLUMNS, name="finding")
    return ExitStatus.FOUND if findings else ExitStatus.OK
