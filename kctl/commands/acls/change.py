"""`kctl acls add`, `remove` and `apply`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kctl.admin.acls import create_acls, delete_acls, describe_acls, find_acls
from kctl.admin.connection import ask
from kctl.cli.arguments.acl_files import parse_acls
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
from kctl.cli.confirmation import (
    DryRun,
    Plan,
    Yes,
    confirm_plan,
    refuse_if_read_only,
    show_dry_run,
)
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.text_files import read_small_text
from kctl.commands.acls.list import Principals
from kctl.commands.acls.options import (
    Allow,
    AllowHosts,
    Consumer,
    Deny,
    DenyHosts,
    Idempotent,
    OnlyAllow,
    OnlyAllowHosts,
    OnlyConsumer,
    OnlyDeny,
    OnlyDenyHosts,
    OnlyProducer,
    Producer,
    rule_options,
)
from kctl.model.acls import Acl, AclFilter
from kctl.views.acls import (
    CHANGE_COLUMNS,
    COLUMNS,
    STATUS_COLUMNS,
    acl_row,
    change_rows,
    show_acl_outcomes,
)
from kctl.views.kafka_text.acls import addition_text
from kctl.views.quantities import plural

CHECK = "kctl acls list"


def add(
    ctx: typer.Context,
    resources: Resources = None,
    allow: Allow = None,
    deny: Deny = None,
    operations: Operations = None,
    allow_hosts: AllowHosts = None,
    deny_hosts: DenyHosts = None,
    pattern: Pattern = PatternWord.LITERAL,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
    topics: KafkaTopics = None,
    groups: KafkaGroups = None,
    cluster: KafkaCluster = False,
    transactional_ids: KafkaTransactionalIds = None,
    tokens: KafkaTokens = None,
    users: KafkaUsers = None,
) -> None:
    """Add ACLs: every combination of resources, principals, hosts and operations.

    Without --operation, --producer or --consumer, the rules apply to all operations.
    """
    session = session_of(ctx)
    kafka = KafkaResources(topics, groups, cluster, transactional_ids, tokens, users)
    wanted = rule_options(
        resources,
        kafka,
        pattern,
        operations,
        allow=allow,
        deny=deny,
        allow_hosts=allow_hosts,
        deny_hosts=deny_hosts,
        producer=producer,
        consumer=consumer,
        idempotent=idempotent,
    )
    acls = wanted.acls()
    if not dry_run:
        refuse_if_read_only(session, STATUS_COLUMNS)
    present = set(ask(session, lambda client: describe_acls(client, AclFilter())))
    new = [acl for acl in acls if acl not in present]
    if dry_run:
        show_dry_run(session, _addition(new))
        return
    outcomes = ask(session, lambda client: create_acls(client, new), check=CHECK) if new else []
    if text_format and not any(one.error for one in outcomes):
        session.out.text(addition_text(acls))
        return
    show_acl_outcomes(session.out, acls, dict(zip(new, outcomes, strict=True)), "added")


def _addition(acls: Sequence[Acl]) -> Plan:
    question = f"Add {plural(len(acls), 'ACL')}?"
    return Plan(question, change_rows("add", acls), CHANGE_COLUMNS, "principal", STATUS_COLUMNS)


def remove(
    ctx: typer.Context,
    resources: Resources = None,
    principals: Principals = None,
    allow: OnlyAllow = None,
    deny: OnlyDeny = None,
    operations: Operations = None,
    allow_hosts: OnlyAllowHosts = None,
    deny_hosts: OnlyDenyHosts = None,
    pattern: Pattern = PatternWord.LITERAL,
    producer: OnlyProducer = False,
    consumer: OnlyConsumer = False,
    idempotent: Idempotent = False,
    all_acls: Annotated[bool, typer.Option("--all", help="All ACLs of the cluster.")] = False,
    yes: Annotated[
        bool, typer.Option("-y", "--yes", "--force", help="Do not ask for confirmation.")
    ] = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
    topics: KafkaTopics = None,
    groups: KafkaGroups = None,
    cluster: KafkaCluster = False,
    transactional_ids: KafkaTransactionalIds = None,
    tokens: KafkaTokens = None,
    users: KafkaUsers = None,
) -> None:
    """Remove the ACLs of resources or principals.

    --allow, --deny, hosts and operations restrict the selection; without them, all ACLs of the
    resources or principals are removed.
    """
    session = session_of(ctx)
    kafka = KafkaResources(topics, groups, cluster, transactional_ids, tokens, users)
    wanted = rule_options(
        resources,
        kafka,
        pattern,
        operations,
        allow=allow,
        deny=deny,
        allow_hosts=allow_hosts,
        deny_hosts=deny_hosts,
        producer=producer,
        consumer=consumer,
        idempotent=idempotent,
    )
    named = [parse_principal(text) for text in principals or ()]
    if not (wanted.resources or named or wanted.allow or wanted.deny or all_acls):
        raise CliError(
            "no ACL specified",
            "name a resource or a principal; --all removes every ACL of the cluster",
            ExitStatus.USAGE,
        )
    role = set(wanted.acls()) if wanted.has_role else None
    found = [
        acl
        for acl in ask(session, lambda client: find_acls(client, wanted.filters()))
        if (acl in role if role is not None else wanted.selects(acl))
        and (not named or acl.principal in named)
    ]
    _remove(session, found, yes=yes, dry_run=dry_run, quiet=bool(text_format))


def _remove(
    session: Session, acls: Sequence[Acl], *, yes: bool, dry_run: bool, quiet: bool
) -> None:
    if not acls:
        raise CliError("no ACL matches", "kctl acls list shows the ACLs")
    rows = [acl_row(acl) for acl in sorted(acls, key=lambda acl: acl.sort_key)]
    plan = Plan(f"Remove {plural(len(acls), 'ACL')}?", rows, COLUMNS, "principal", STATUS_COLUMNS)
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return
    outcomes = ask(session, lambda client: delete_acls(client, acls), check=CHECK)
    if quiet and not any(one.error for one in outcomes):
        return
    show_acl_outcomes(session.out, acls, dict(zip(acls, outcomes, strict=True)), "removed")


def apply(
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="YAML of `kctl acls export`; - for stdin.")
    ],
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove ACLs that are not in the file.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Add the ACLs of a file that do not exist yet; with --prune, remove all others."""
    session = session_of(ctx)
    wanted = parse_acls(_read(file), file)
    if not dry_run:
        refuse_if_read_only(session, STATUS_COLUMNS)
    present = ask(session, lambda client: describe_acls(client, AclFilter()))
    new = [acl for acl in wanted if acl not in set(present)]
    old = [acl for acl in present if acl not in set(wanted)] if prune else []
    rows = [*change_rows("add", new), *change_rows("remove", old)]
    question = f"Add {plural(len(new), 'ACL')} and remove {plural(len(old), 'ACL')}?"
    plan = Plan(question, rows, CHANGE_COLUMNS, "principal", STATUS_COLUMNS)
    if dry_run:
        show_dry_run(session, plan)
        return
    if not rows:
        session.out.note("no difference: nothing was changed")
        session.out.rows([], [*CHANGE_COLUMNS], name="principal")
        return
    if old:
        confirm_plan(session, plan, yes=yes, dry_run=False)
    # New ACLs first: a client whose rule is replaced never lacks both.
    added = ask(session, lambda client: create_acls(client, new), check=CHECK) if new else []
    failed = any(one.error for one in added)
    gone = (
        []
        if failed or not old
        else ask(session, lambda client: delete_acls(client, old), check=CHECK)
    )
    outcomes = dict(zip(new, added, strict=True)) | dict(
        zip(old if gone else [], gone, strict=True)
    )
    show_acl_outcomes(session.out, [*new, *old], outcomes, "added", removed=old)


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else read_small_text(Path(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CliError(f"cannot read {file}: {reason}", status=ExitStatus.USAGE) from error
