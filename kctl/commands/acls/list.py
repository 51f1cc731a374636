"""`kctl acls list` and `export`."""

from enum import StrEnum
from typing import Annotated

import typer

from kctl.admin.acls import describe_acls, find_acls
from kctl.admin.connection import ask
from kctl.cli.arguments.acl_files import acls_document
from kctl.cli.arguments.acls import (
    KafkaCluster,
    KafkaGroups,
    KafkaResources,
    KafkaTokens,
    KafkaTopics,
    KafkaTransactionalIds,
    KafkaUsers,
    Operations,
    Pattern,
    PatternWord,
    Resources,
    parse_principal,
)
from kctl.cli.options import KafkaText, session_of
from kctl.cli.output import Output, OutputFormat
from kctl.commands.acls.options import rule_options
from kctl.model.acls import AclFilter
from kctl.views.acls import COLUMNS, acl_row
from kctl.views.kafka_text.acls import listing_text


class PermissionWord(StrEnum):
    """Values of `--permission`."""

    ALLOW = "allow"
    DENY = "deny"


Principals = Annotated[
    list[str] | None,
    typer.Option(
        "--principal",
        metavar="PRINCIPAL",
        help="Only ACLs that name this principal; can be repeated.",
    ),
]
PermissionOption = Annotated[
    PermissionWord | None,
    typer.Option("--permission", help="Only ALLOW rules, or only DENY rules."),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="ADDRESS", help="Only ACLs for this host; can be repeated."),
]


def list_acls(
    ctx: typer.Context,
    resources: Resources = None,
    principals: Principals = None,
    operations: Operations = None,
    permission: PermissionOption = None,
    hosts: Hosts = None,
    pattern: Pattern = PatternWord.LITERAL,
    text_format: KafkaText = None,
    topics: KafkaTopics = None,
    groups: KafkaGroups = None,
    cluster: KafkaCluster = False,
    transactional_ids: KafkaTransactionalIds = None,
    tokens: KafkaTokens = None,
    users: KafkaUsers = None,
) -> None:
    """List the ACLs of all resources, or of the given ones.

    With `--pattern match`, all ACLs that apply to the resource: also prefixed and wildcard ones.
    """
    session = session_of(ctx)
    kafka = KafkaResources(topics, groups, cluster, transactional_ids, tokens, users)
    wanted = rule_options(resources, kafka, pattern, operations)
    named = [parse_principal(text) for text in principals or ()]
    acls = [
        acl
        for acl in ask(session, lambda client: find_acls(client, wanted.filters()))
        if wanted.selects(acl)
        and (not named or acl.principal in named)
        and (not hosts or acl.host in hosts)
        and (permission is None or acl.permission.name == permission.name)
    ]
    if text_format:
        session.out.text(listing_text(acls, named))
        return
    acls.sort(key=lambda acl: acl.sort_key)
    session.out.rows(map(acl_row, acls), COLUMNS, name="principal")


def export(ctx: typer.Context) -> None:
    """Print all ACLs as YAML, for `kctl acls apply`; as JSON with -o json."""
    session = session_of(ctx)
    acls = ask(session, lambda client: describe_acls(client, AclFilter()))
    is_json = session.output is OutputFormat.JSON
    out = Output(OutputFormat.JSON if is_json else OutputFormat.YAML)
    out.record(acls_document(acls), [], name="acls")
