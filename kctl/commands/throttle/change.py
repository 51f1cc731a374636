"""`kctl throttle set` and `kctl throttle clear`."""

from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.admin.reassignments import list_reassignments
from kctl.admin.throttles import alter_and_verify, own_configs
from kctl.admin.topic_selection import require_all_found
from kctl.admin.topics import find_topics
from kctl.cli.arguments.amounts import parse_broker_ids, parse_rate
from kctl.cli.arguments.topics import Selection, TopicNames
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, usage_error
from kctl.cli.options import Session, session_of
from kctl.model.reassignments import Reassignments
from kctl.model.throttles import Throttle
from kctl.operations.throttles import find_throttles
from kctl.plans.throttles import (
    ConfigChanges,
    brokers_of,
    deletions_of,
    endpoints_of,
    every_replica_changes,
    merged,
    rate_changes,
    topic_changes,
)
from kctl.views.config_changes import COLUMNS as CHANGE_COLUMNS
from kctl.views.config_changes import change_rows
from kctl.views.outcomes import outcome_columns, show_outcomes
from kctl.views.quantities import plural

Brokers = Annotated[
    str | None, typer.Option("--brokers", metavar="1,2", help="Only these brokers.")
]


def set_throttles(
    ctx: typer.Context,
    rate: Annotated[
        str | None, typer.Argument(metavar="RATE", help="Bytes per second and broker, e.g. 50MB.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC…",
            help="Throttle all replicas of these topics, reassigned or not.",
            show_default=False,
        ),
    ] = None,
    brokers: Brokers = None,
    log_dirs: Annotated[
        str | None,
        typer.Option(
            "--log-dirs",
            "--log-dirs-throttle",
            metavar="RATE",
            help="Throttle of moves between log directories, in bytes per second.",
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Set replication throttles.

    Without topics, the reassignments in progress are throttled: their replicas, and the brokers
    they are copied from and to. Setting another rate takes effect immediately.
    """
    session = session_of(ctx)
    if rate is None and log_dirs is None:
        raise usage_error("no rate specified", "e.g. kctl throttle set 50MB")
    limit = parse_rate(rate, "RATE") if rate else None
    dirs_limit = parse_rate(log_dirs, "--log-dirs") if log_dirs else None
    named = parse_broker_ids(brokers, "--brokers")

    async def question(client: Client) -> tuple[Reassignments, frozenset[int]]:
        topics = await find_topics(client, names) if names else []
        require_all_found(Selection(tuple(names or ())), topics)
        up = frozenset(broker.id for broker in (await describe_cluster(client)).brokers)
        return await list_reassignments(client), up

    in_progress, up = ask(session, question)
    if missing := named - up:
        raise CliError(
            f"no such broker: {', '.join(map(str, sorted(missing)))}",
            "kctl brokers list shows the ids",
        )
    changes = _wanted(
        in_progress, named or up, names or [], limit, dirs_limit, explicit=bool(named)
    )
    _apply(session, changes, "Set", yes=yes, dry_run=dry_run)


def _wanted(
    in_progress: Reassignments,
    brokers: frozenset[int],
    topics: list[str],
    rate: int | None,
    log_dirs_rate: int | None,
    *,
    explicit: bool,
) -> ConfigChanges:
    """Config changes for the given topics and brokers, else for reassignments in progress."""
    if topics or explicit or rate is None:
        changes = rate_changes(brokers, rate, log_dirs_rate)
        return merged(every_replica_changes(topics), changes)
    if not in_progress:
        raise CliError(
            "no reassignment in progress",
            "specify topics to throttle, or brokers to set the rate on: --brokers 1,2",
        )
    endpoints = endpoints_of(in_progress, {}, {})
    # The configs of a broker that is down cannot be changed.
    affected = sorted(brokers.intersection(brokers_of(endpoints)))
    rates = rate_changes(affected, rate, log_dirs_rate)
    return merged(topic_changes(endpoints), rates)


def clear(
    ctx: typer.Context,
    names: TopicNames = None,
    brokers: Brokers = None,
    leaked: Annotated[
        bool, typer.Option("--leaked", help="Only throttles without a reassignment in progress.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Remove throttles of the given topics and brokers, or all."""
    session = session_of(ctx)
    ids = {str(broker) for broker in parse_broker_ids(brokers, "--brokers")}
    chosen = [
        throttle
        for throttle in ask(session, find_throttles, partial=True)
        if (throttle.leaked or not leaked) and _is_named(throttle, set(names or ()), ids)
    ]
    if not chosen:
        session.out.nothing("no such throttle")
        return
    _apply(session, deletions_of(chosen), "Clear", yes=yes, dry_run=dry_run)


def _is_named(throttle: Throttle, topics: set[str], brokers: set[str]) -> bool:
    if not (topics or brokers):
        return True
    is_topic = throttle.entity.type == "topics"
    return throttle.entity.name in (topics if is_topic else brokers)


def _apply(
    session: Session, changes: ConfigChanges, verb: str, *, yes: bool, dry_run: bool
) -> None:
    # Brokers that do not answer are left out: they must not keep the throttles of the others.
    before = ask(session, lambda client: own_configs(client, changes), partial=True)
    changes = {entity: some for entity, some in changes.items() if entity in before}
    rows = [row for e, some in changes.items() for row in change_rows(e, before[e], some)]
    question = f"{verb} {plural(len(rows), 'throttle')}?"
    plan = Plan(question, rows, CHANGE_COLUMNS, "entity", outcome_columns("entity"))
    if confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        outcomes = ask(
            session, lambda client: alter_and_verify(client, changes), check="kctl throttle list"
        )
        show_outcomes(session.out, outcomes, "entity", "changed")
